#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Inspection, push grants and secrets in sessions, and what is kept of them.

A secret is a random canary that has to arrive in its header and nowhere else: not in what the
session wrote, not in the audit log, not in what was printed, neither raw nor encoded. Each absence
has a control that shows the same finder finding it.
"""

import json
import os
import re
import secrets
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import tap  # noqa: E402
from canary import Server, forms, header, holds, run_parts  # noqa: E402
from place import SANDGLASS, wait_for  # noqa: E402
from session import Sessions, code  # noqa: E402

TLS, PLAIN = 8443, 8081
CURL = "curl -sS -m 20 "
SAYS = CURL + "-o /dev/null -w '%{http_code} ' "
BEARER = "-H \"Authorization: Bearer $API_TOKEN\" "
ONE, TWO = f"https://one.test:{TLS}", f"https://two.test:{TLS}"


class Box:
    def __init__(self, who, tls):
        self.who, self.tls, self.p = who, tls, Sessions(who)
        self.printed = b""
        # Characters that every encoding changes.
        self.canary = "k" + secrets.token_urlsafe(18) + "/+?~"
        self.filed = "f/" + secrets.token_urlsafe(18)
        self.lost = []  # what only commands were given: in queries, headers, bodies
        self.token = f"{self.p.home}/token"
        self.p.write(self.token, self.filed + "\n", 0o600)

    def close(self):
        self.p.close()

    def row(self, good, name, *why):
        return tap.ok(good, f"{name} ({self.who.name})", *why)

    def policy(self, **more):
        path = f"{self.p.top}/policy.json"
        self.p.write(path, json.dumps({"version": 1, **more}), 0o600)
        return path

    def env(self, value=None):
        return self.p.env(API_TOKEN=value or self.canary)

    def session(self, *options, env=None, **policy):
        made = self.p.session("new", "--policy", self.policy(**policy), *options,
                              env=env or self.env())
        self.printed += (made.out + made.err).encode()
        return made

    def exec(self, name, script, *options, env=None):
        done = self.p.exec(name.out.strip() if hasattr(name, "out") else name, script, *options, env=env)
        self.printed += (done.out + done.err).encode()
        return done

    def destroy(self, made):
        self.p.session("destroy", "--discard", made.out.strip())

    def audit(self):
        path = f"{self.p.state}/audit"
        lines = []
        for name in sorted(os.listdir(path)):
            if name.endswith(".jsonl"):
                with open(f"{path}/{name}", encoding="utf-8") as handle:
                    lines += [json.loads(line) for line in handle]
        return lines

    def proxies(self):
        """Those of this place's keepers."""
        mine, found = set(self.p.named("sandglass-keep")), []
        for pid in (p for p in os.listdir("/proc") if p.isdigit()):
            try:
                with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as handle:
                    name, rest = handle.read().rsplit(")", 1)
                if "(sandglass-prox" in name and int(rest.split()[1]) in mine and \
                        rest.split()[0] != "Z":
                    found.append(int(pid))
            except (OSError, IndexError):
                continue
        return found


def secret(**more):
    return {"name": "api", "from": "env:API_TOKEN", "hosts": [f"one.test:{TLS}"],
            "header": "Authorization: Bearer {value}", **more}


OPEN = {"allow": [f"one.test:{TLS}", f"two.test:{TLS}"]}


def used(box):
    made = box.session(network=OPEN, secrets=[secret(), secret(name="filed", **{"from": "file:~/token"},
                                                               header="X-Filed: {value}")])
    box.tls.take()
    script = ("echo $API_TOKEN; " + CURL + BEARER + "-H \"X-Filed: $FILED\" " + f"{ONE}/one; "
              + CURL + BEARER + f"{TWO}/two; env; cat /proc/self/environ | tr '\\0' '\\n'")
    first = box.exec(made, script)
    seen = {r.split(" ")[1]: r for r in box.tls.take()}
    box.row(header(seen.get("/one", ""), "authorization") == f"Bearer {box.canary}" and
            header(seen.get("/one", ""), "x-filed") == box.filed,
            "a call of a session: the values arrive in their headers", made, first, seen)
    box.row(holds(seen.get("/one", "").encode(), box.canary) and seen.get("/two") and
            not holds(seen["/two"].encode(), box.canary), "at another host they do not", seen)
    box.row(first.out.startswith("sandglass-api-") and not holds(first.out.encode(), box.canary) and
            not holds(first.out.encode(), box.filed), "inside there are placeholders", first)
    other = "n" + secrets.token_urlsafe(20)
    box.p.write(box.token, "n" + secrets.token_urlsafe(20) + "\n", 0o600)
    again = box.exec(made, script, env=box.p.env(API_TOKEN=other))
    box.p.write(box.token, box.filed + "\n", 0o600)
    seen = {r.split(" ")[1]: r for r in box.tls.take()}
    box.row(again.out.split("\n")[0] == first.out.split("\n")[0] and
            header(seen.get("/one", ""), "authorization") == f"Bearer {box.canary}" and
            header(seen.get("/one", ""), "x-filed") == box.filed,
            "the next call has the same placeholder, and the value of the session's beginning",
            again, seen)
    shown = box.p.show(made.out.strip())
    text = box.p.session("show", made.out.strip())
    box.printed += (json.dumps(shown) + text.out + text.err).encode()
    box.row(shown.get("secrets") == ["api", "filed"] and
            shown.get("inspection") is True and "secrets  api, filed" in text.out and
            "inspection" in text.out, "session show names them, and that it inspects", shown, text)
    box.destroy(made)
    plain = box.session(network={"allow": [f"one.test:{TLS}"]})
    shown = box.p.show(plain.out.strip())
    box.row(shown.get("secrets") == [] and shown.get("inspection") is False,
            "control: a session without", shown)
    bare = box.exec(plain, "ls /etc/ssl/certs/sandglass-ca.pem; echo \"[$NODE_EXTRA_CA_CERTS]\"")
    box.row("[]" in bare.out and "sandglass-ca.pem\n" not in bare.out,
            "and its calls have neither certificate nor variables", bare)
    box.destroy(plain)


def requests(box):
    net = {"allow": [{"host": f"one.test:{TLS}", "methods": ["GET"], "paths": ["/repos/**"]}]}
    made = box.session(network=net)
    codes = "".join(SAYS + f"{how} '{ONE}{path}'; " for how, path in
                    (("", "/repos/a"), ("-X POST", "/repos/a"), ("", "/admin")))
    box.tls.take()
    done = box.exec(made, codes, "--json")
    result = json.loads(done.out or "{}")
    seen = [line.split("\r\n")[0] for line in box.tls.take()]
    box.row(result.get("stdout", {}).get("text", "").split() == ["200", "403", "403"] and
            seen == ["GET /repos/a HTTP/1.1"], "a rule by method and path", done, seen)
    box.row([d["rule"] for d in result.get("denials", [])] and
            all("GET /repos/**" in d["rule"] for d in result["denials"]), "its denials name it", result)
    box.destroy(made)
    git = SAYS + f"-d x {ONE}/t/app.git/git-receive-pack; " + SAYS + f"-d x {ONE}/t/other.git/git-receive-pack"
    net = {"allow": [f"one.test:{TLS}"], "inspect": [f"one.test:{TLS}"]}
    made = box.session(network=net)
    done = box.exec(made, git)
    box.row(done.out.split() == ["403", "403"], "git writes nothing without a grant", done)
    box.destroy(made)
    made = box.session(network={**net, "push": [f"one.test:{TLS}/t/app"]})
    done = box.exec(made, git)
    box.row(done.out.split() == ["200", "403"], "with a grant to that repository only", done)
    box.destroy(made)


CERTIFICATE = "sed -n 2,4p /etc/ssl/certs/sandglass-ca.pem; "


def restarted(box):
    made = box.session(network=OPEN, secrets=[secret()])
    script = CERTIFICATE + "echo $API_TOKEN; " + CURL + BEARER + f"{ONE}/one"
    first = box.exec(made, script)
    second = box.exec(made, script)
    box.row(first.out == second.out and "served /one" in first.out,
            "control: two calls have one certificate and one placeholder", first, second)
    old = box.proxies()
    for pid in old:
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not set(box.proxies()) & set(old), 20, 0.05)
    box.tls.take()
    third = box.exec(made, script)
    seen = (box.tls.take() or [""])[0]
    box.row(old and third.out.split("\n")[3:] == first.out.split("\n")[3:] and
            third.out.split("\n")[:3] != first.out.split("\n")[:3] and
            header(seen, "authorization") == f"Bearer {box.canary}",
            "after kill -9 of the proxy: another certificate, the same placeholder", first, third)
    for pid in box.p.named("sandglass-keep"):
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not box.p.named("sandglass-keep"), 20, 0.05)
    none = box.exec(made, script, env=box.p.env())
    box.row(none.status == 125 and code(none) == "SECRET_UNAVAILABLE" and "API_TOKEN" in none.err,
            "after kill -9 of the keeper it is fetched anew, and has to be there", none)
    other = "n" + secrets.token_urlsafe(20)
    last = box.exec(made, script, env=box.p.env(API_TOKEN=other))
    seen = (box.tls.take() or [""])[0]
    box.row(header(seen, "authorization") == f"Bearer {other}" and
            last.out.split("\n")[3:] == first.out.split("\n")[3:],
            "with the value of then, and the same placeholder", last, seen)
    box.destroy(made)
    bad = box.session(network=OPEN, secrets=[secret()], env=box.p.env())
    box.row(bad.status == 2 and code(bad) == "SECRET_UNAVAILABLE" and
            not [n for n in os.listdir(f"{box.p.state}/sessions") if n != ".lock"],
            "without the value there is no session", bad, os.listdir(f"{box.p.state}/sessions"))


def reviewed(box):
    path = box.policy(network=OPEN, secrets=[secret()])
    box.tls.take()
    done = box.p.run([SANDGLASS, "run", "--json", "--review", "--policy", path, "-c",
                      CURL + BEARER + f"{ONE}/one; echo new >kept"], env=box.env())
    seen = (box.tls.take() or [""])[0]
    box.printed += (done.out + done.err).encode()
    box.row(header(seen, "authorization") == f"Bearer {box.canary}" and "served /one" in done.out,
            "run --review has them too", done, seen)
    for name in [n for n in os.listdir(f"{box.p.state}/sessions") if n != ".lock"]:
        box.p.session("destroy", "--discard", name)


def logged(box):
    """Requests and uses of secrets in the audit log, and what of them is not."""
    lost = [f"{word}{secrets.token_urlsafe(18)}" for word in ("query", "header", "body", "answer")]
    box.p.write(f"{box.p.src}/ask.sh", CURL + BEARER + f"-H 'X-Lost: {lost[1]}' -d '{lost[2]}' "
                f"'{ONE}/path/a?q={lost[0]}' | head -c 7; " + 3 * (CURL + f"{ONE}/echo?back={lost[3]} >/dev/null; ")
                + SAYS + f"-X DELETE '{ONE}/path/b'", 0o644)
    net = {"allow": [f"one.test:{TLS}"], "deny": [{"host": f"one.test:{TLS}", "methods": ["DELETE"]}]}
    made = box.session(network=net, secrets=[secret()])
    box.tls.take()
    done = box.exec(made, "sh ask.sh")
    arrived = "".join(box.tls.take())
    box.row(done.out.endswith("403 ") and all(one in arrived for one in lost[:2]), "control: they were asked",
            done, arrived)
    lines = [line for line in box.audit() if line["session"] == made.out.strip()]
    got = [(r["data"]["method"], r["data"]["path"], r["data"]["status"], r["data"]["count"], r["decision"])
           for r in lines if r["event"] == "egress.allow" and "method" in r["data"]]
    box.row(("POST", "/path/a", 200, 1, "allow") in got and ("GET", "/echo", 200, 3, "allow") in got and
            len(got) == 2 and all(r["rule"] == "network.allow[0]" for r in lines if "method" in r["data"]),
            "each request once, without its query, equal ones counted", got, lines)
    uses = [r["data"] for r in lines if r["event"] == "secret.use"]
    box.row([(u["name"], u["target"], u["count"]) for u in uses] == [("api", f"one.test:{TLS}", 1)],
            "secret.use: the name, and whereto", uses)
    text = b"".join(json.dumps(line).encode() for line in box.audit())
    box.row(holds(text, "/path/a") and not any(holds(text, one) for one in [*lost, box.canary, box.filed]),
            "nothing of a query, a header, a body or a value is in the log; control: a path is", text[-3000:])
    many = box.exec(made, CURL + f"'{ONE}/many/[1-40]' >/dev/null; " +
                    CURL + f"-H 'Authorization: Bearer '$API_TOKEN {ONE}/last")
    lines = [line for line in box.audit() if line["session"] == made.out.strip()]
    rows = [r["data"] for r in lines if r["event"] == "egress.allow" and "/many/" in r["data"].get("path", "")]
    box.row(many.status == 0 and len(rows) == 24 and rows[-1]["more"] == 17 and
            [r["data"]["count"] for r in lines if r["event"] == "secret.use"] == [1, 1],
            "24 requests are told, the others are counted; secrets are told all the same", rows)
    done = box.p.run([SANDGLASS, "audit", "verify"])
    box.row(done.status == 0, "the chain holds", done)
    box.destroy(made)
    plain = box.p.run([SANDGLASS, "run", "--policy", box.policy(network=net, secrets=[secret()]),
                       "sh", "ask.sh"], env=box.env())
    got = [r["data"] for r in box.audit() if r["event"] in ("secret.use", "egress.allow")][-5:]
    box.row(("POST", "/path/a", 200) in [(r.get("method"), r.get("path"), r.get("status")) for r in got] and
            any(r.get("name") == "api" for r in got), "so does `run`", plain, got)
    box.printed += (plain.out + plain.err).encode()


def said(box):
    """What a command prints, where it is kept."""
    box.p.write(f"{box.p.src}/known", "\n".join(forms(box.canary)) + "\n", 0o644)
    made = box.session(network=OPEN, secrets=[secret()])
    box.row(holds(open(f"{box.p.src}/known", "rb").read(), box.canary), "control: the source has it", made)
    # In pieces, too: a byte at a time through a pipe.
    script = "cat known; cat known >&2; dd if=known bs=1 status=none; printf done"
    plain = box.exec(made, "{ " + script + "; } >/dev/null 2>&1")
    done = box.p.exec(made.out.strip(), script, "--json")
    box.printed += (done.out + done.err).encode()
    result = json.loads(done.out or "{}")
    logs = {}
    top = f"{box.p.dir(made.out.strip())}/root/logs"
    for name in os.listdir(top):
        with open(f"{top}/{name}", "rb") as handle:
            logs[name] = handle.read()
    kept = logs.get(f"{result.get('call')}.out", b"")
    box.row(b"****" in kept and kept.endswith(b"done") and len(kept) == 2 *
            os.path.getsize(f"{box.p.src}/known") + 4 and not any(holds(log, box.canary) for log in logs.values()),
            "the session's logs hold it neither raw, nor in base64, nor percent-encoded", plain, kept)
    shown = box.p.session("logs", made.out.strip())
    told = "".join(open(os.path.join(box.p.dir(made.out.strip()), "results", n), encoding="utf-8").read()
                   for n in os.listdir(f"{box.p.dir(made.out.strip())}/results"))
    box.row("done" in shown.out and not holds((shown.out + shown.err + told + done.out).encode(), box.canary),
            "nor do `session logs`, the result and what is kept of it", shown)
    os.unlink(f"{box.p.src}/known")
    box.destroy(made)
    # A value that is none of the caller's variables, as an argument.
    filed = box.session(network=OPEN, secrets=[secret(name="filed", **{"from": "file:~/token"})])
    box.exec(filed, f"test {box.filed} = none; : an-argument")
    log = "\n".join(json.dumps(line) for line in box.audit() if line["event"] == "call.start").encode()
    box.row(b"an-argument" in log and not holds(log, box.filed), "nor does the command in the audit log",
            log[-1500:])
    box.destroy(filed)


def nowhere(box):
    """After all of it: whatever lies below the place, but where it was put by hand."""
    found, read = [], 0
    for top, _, names in os.walk(box.p.top):
        for name in names:
            path = os.path.join(top, name)
            if path == box.token or not os.path.isfile(path) or os.path.islink(path):
                continue
            read += 1
            with open(path, "rb") as f:
                data = f.read()
            if any(holds(data, value) for value in (box.canary, box.filed)):
                found.append(path)
    for top, _, names in os.walk(box.p.state):
        for path in (os.path.join(top, n) for n in names):
            if os.path.isfile(path) and not os.path.islink(path):
                read += 1
                with open(path, "rb") as f:
                    found += [path] if holds(f.read(), box.canary) else []
    box.row(read > 3 and not found, "no file that was written holds one, raw or encoded", found, read)
    box.row(len(box.printed) > 1000 and not holds(box.printed, box.canary) and
            not holds(box.printed, box.filed), "nothing that was printed does")
    with open(box.token, "rb") as f:
        box.row(holds(f.read(), box.filed), "control: the finder finds it where it is")


PARTS = (used, requests, restarted, reviewed, logged, said, nowhere)


if __name__ == "__main__":
    sys.exit(run_parts(PARTS, lambda keys: (Server(TLS, keys.pair("one")),), Box))
