#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Secrets and inspection as a person uses them: policy, `run`, real clients, a server with TLS
and a private authority.

A secret is a random canary. It has to arrive in the one header it is for, and nowhere else: not
inside, not elsewhere on the wire, and in nothing that was printed or written. Each absence has a
control that shows the same canary where it may be.
"""

import base64
import json
import os
import secrets
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import tap  # noqa: E402
from canary import Server, forms, header, holds, run_parts  # noqa: E402
from place import SANDGLASS, Place  # noqa: E402

TLS, PLAIN = 8443, 8081
CURL = "curl -sS -m 20 "


class Box:
    def __init__(self, who, tls, plain):
        self.who, self.tls, self.plain, self.place = who, tls, plain, Place(who)
        self.printed = b""
        # Characters that every encoding changes.
        self.canary = "k" + secrets.token_urlsafe(18) + "/+?~"
        self.filed, self.told = "f/" + secrets.token_urlsafe(18), "c+" + secrets.token_urlsafe(18)
        self.place.write(f"{self.place.home}/token", self.filed + "\n", 0o600)
        self.place.write(f"{self.place.home}/tell", f"#!/bin/sh\necho '{self.told}'\n", 0o755)

    def close(self):
        self.place.close()

    def row(self, good, name, *why):
        return tap.ok(good, f"{name} ({self.who.name})", *why)

    def run(self, policy, script, *options, env=None, json_too=True):
        path = f"{self.place.top}/policy.json"
        self.place.write(path, json.dumps({"version": 1, **policy}), 0o600)
        self.tls.take(), self.plain.take()
        done = self.place.run([SANDGLASS, "run", *(["--json"] if json_too else []), "--policy", path, *options,
                               "-c", script], env=self.place.env(API_TOKEN=self.canary, **(env or {})))
        self.printed += (done.out + done.err).encode()
        try:
            return json.loads(done.out), done
        except ValueError:
            return None, done


def out(result):
    return (result or {"stdout": {"text": ""}})["stdout"]["text"]


def secret(**more):
    return {"name": "api", "from": "env:API_TOKEN", "hosts": [f"one.test:{TLS}"],
            "header": "Authorization: Bearer {value}", **more}


NET = {"allow": [f"one.test:{TLS}", f"two.test:{TLS}", f"one.test:{PLAIN}"]}


def inspected(box):
    net = {"allow": [f"one.test:{TLS}"]}
    result, done = box.run({"network": net}, CURL + f"https://one.test:{TLS}/a")
    box.row(not result["ok"] or "served /a" in out(result), "control: without inspection", done)
    who = ("python3 -c \"import ssl,socket; c=ssl.create_default_context(); "
           f"s=c.wrap_socket(socket.create_connection(('one.test',{TLS})),server_hostname='one.test'); "
           "print('issuer', s.getpeercert()['issuer'])\"")
    net["inspect"] = [f"one.test:{TLS}"]
    result, done = box.run({"network": net}, CURL + f"https://one.test:{TLS}/a; {who}")
    box.row("served /a" in out(result) and "good authority" not in out(result) and
            "issuer" in out(result), "inspected: served, by a certificate of the session's own", done)
    result, done = box.run({"network": net},
                           f"python3 -c \"import urllib.request as u; print(u.urlopen('https://one.test:{TLS}/py')"
                           ".read().decode())\"; "
                           + (f"node -e \"require('https').get('https://one.test:{TLS}/node',r=>r.pipe("
                              "process.stdout))\"; " if shutil.which("node") else "echo served /node; ")
                           + "test -r /etc/ssl/certs/sandglass-ca.pem && head -1 $SSL_CERT_FILE; "
                           "test $CURL_CA_BUNDLE = $SSL_CERT_FILE && test -r $NODE_EXTRA_CA_CERTS && echo set")
    box.row(all(f"served /{x}" in out(result) for x in ("py", "node")) and "BEGIN CERT" in out(result) and
            "\nset\n" in out(result), "python and node believe it, the variables are set", done)
    result, done = box.run({"network": {"allow": [f"one.test:{TLS}"]}},
                           "ls /etc/ssl/certs/sandglass-ca.pem; echo \"[$NODE_EXTRA_CA_CERTS]\"")
    box.row("[]" in out(result) and "sandglass-ca.pem\n" not in out(result),
            "without inspection neither certificate nor variables", done)


def requests(box):
    net = {"allow": [{"host": f"one.test:{TLS}", "methods": ["GET"], "paths": ["/repos/**"]}]}
    codes = "".join(CURL + f"-o /dev/null -w '%{{http_code}} ' {how} 'https://one.test:{TLS}{path}'; "
                    for how, path in (("", "/repos/a"), ("-X POST", "/repos/a"), ("", "/admin"),
                                      ("--path-as-is", "/repos/../admin"), ("--path-as-is", "/repos/%2e%2e/x"),
                                      ("", "/repos/%61")))
    result, done = box.run({"network": net}, codes)
    seen = [line.split("\r\n")[0] for line in box.tls.take()]
    box.row(out(result).split() == ["200", "403", "403", "403", "403", "200"] and len(seen) == 2,
            "a rule by method and path: only those requests arrive", done, seen)
    rows = [(d["target"], d["rule"]) for d in (result or {}).get("denials", [])]
    box.row(rows and all(r[0] == f"one.test:{TLS}" and "GET /repos/**" in r[1] for r in rows),
            "each denial names the rule", rows)
    git = (CURL + f"-o /dev/null -w '%{{http_code}} ' https://one.test:{TLS}/t/app.git/info/refs?service="
           "git-upload-pack; " + CURL + f"-o /dev/null -w '%{{http_code}} ' -d x https://one.test:{TLS}"
           "/t/app.git/git-receive-pack")
    net = {"allow": [f"one.test:{TLS}"], "inspect": [f"one.test:{TLS}"]}
    result, done = box.run({"network": net}, git)
    box.row(out(result).split() == ["200", "403"], "git reads, and writes nothing without a grant", done)
    net["push"] = [f"one.test:{TLS}/t/app"]
    result, done = box.run({"network": net}, git)
    box.row(out(result).split() == ["200", "200"], "with a grant for the repository it writes", done)
    net["push"] = [f"one.test:{TLS}/t/other"]
    result, done = box.run({"network": net}, git)
    box.row(out(result).split() == ["200", "403"], "a grant for another repository is none", done)


def replaced(box):
    script = (CURL + f"-H \"Authorization: Bearer $API_TOKEN\" https://one.test:{TLS}/one; "
              + CURL + f"-H \"X-Other: $API_TOKEN\" https://one.test:{TLS}/field; "
              + CURL + f"-H \"Authorization: Bearer $API_TOKEN\" https://two.test:{TLS}/host; "
              + CURL + f"-H \"Authorization: Bearer $API_TOKEN\" http://one.test:{PLAIN}/plain; "
              + CURL + f"-d \"$API_TOKEN\" https://one.test:{TLS}/body; "
              "echo; env; cat /proc/self/environ /proc/1/environ | tr '\\0' '\\n'")
    net = {**NET, "inspect": [f"two.test:{TLS}"]}
    result, done = box.run({"network": net, "secrets": [secret()]}, script)
    seen = {r.split(" ")[1]: r for r in box.tls.take() + box.plain.take()}
    box.row(header(seen.get("/one", ""), "authorization") == f"Bearer {box.canary}",
            "the value arrives in its header", done, seen)
    others = [seen.get(p, "") for p in ("/field", "/host", "/plain", "/body")]
    box.row(all(others) and not any(holds(o.encode(), box.canary) for o in others) or
            (not holds("".join(others).encode(), box.canary) and seen.get("/plain")),
            "in another header, host, plain HTTP and a body it does not", done, others)
    text = out(result)
    box.row("API_TOKEN=sandglass-api-" in text and not holds(text.encode(), box.canary),
            "inside there is a placeholder only", done)
    result, done = box.run({"network": {**NET, "inspect": []},
                            "secrets": [secret(header="Authorization: {basic:bot}")]},
                           CURL + f"-u x:$API_TOKEN https://one.test:{TLS}/basic")
    seen = header((box.tls.take() or [""])[0], "authorization")
    box.row(seen == "Basic " + base64.b64encode(f"bot:{box.canary}".encode()).decode(),
            "inside of Basic, with the user of the policy", done, seen)
    result, done = box.run({"network": NET, "secrets": [secret(plain=True, hosts=[f"one.test:{PLAIN}"])]},
                           CURL + f"-H \"Authorization: Bearer $API_TOKEN\" http://one.test:{PLAIN}/p")
    seen = header((box.plain.take() or [""])[0], "authorization")
    box.row(seen == f"Bearer {box.canary}", "`plain: true`: also without TLS", done, seen)


def sources(box):
    many = [secret(), secret(name="filed", **{"from": "file:~/token"}, header="X-Filed: {value}"),
            secret(name="told-one", **{"from": f"command:{box.place.home}/tell"}, header="X-Told: {value}")]
    script = CURL + (f"-H \"X-Filed: $FILED\" -H \"X-Told: $TOLD_ONE\" -H \"Authorization: $API_TOKEN\" "
                     f"https://one.test:{TLS}/all")
    result, done = box.run({"network": NET, "secrets": many}, script)
    seen = (box.tls.take() or [""])[0]
    box.row(header(seen, "x-filed") == box.filed and header(seen, "x-told") == box.told and
            header(seen, "authorization") == f"Bearer {box.canary}",
            "from a variable, a file and a command", done, seen)
    result, done = box.run({"network": NET, "secrets": many}, script, "--secret", "filed")
    seen = (box.tls.take() or [""])[0]
    box.row(header(seen, "x-filed") == box.filed and not header(seen, "x-told"),
            "--secret: only that one is there", done, seen)
    result, done = box.run({"network": NET, "secrets": many}, "true", "--secret", "filled")
    box.row(done.status == 125 and "did you mean `filed`" in done.out + done.err,
            "--secret of a name that no policy has", done)
    for name, where, why in (("a variable that is not set", "env:NOT_THERE_AT_ALL", "not set"),
                             ("a file that is not there", "file:~/not-there", "No such file"),
                             ("a command that fails", "command:/bin/false", "ended with status 1"),
                             ("a command that is not there", "command:no-such-program", "No such file"),
                             ("an empty value", "command:/bin/true", "empty")):
        result, done = box.run({"network": NET, "secrets": [secret(**{"from": where})]}, "echo ran")
        box.row(done.status == 125 and '"SECRET_UNAVAILABLE"' in done.out and why in done.out and
                "ran" not in out(result), f"{name}: nothing runs", done)
    os.makedirs(f"{box.place.src}/.sandglass", exist_ok=True)
    box.place.own(f"{box.place.src}/.sandglass")
    # What lies in the project is not believed: it names neither source nor host.
    box.place.write(f"{box.place.src}/.sandglass/policy.yaml",
                    json.dumps({"version": 1, "secrets": [secret(hosts=[f"two.test:{TLS}"])],
                                "network": {"push": [f"one.test:{TLS}/t/app"]}}), 0o644)
    result, done = box.run({"network": {**NET, "inspect": [f"two.test:{TLS}"]}},
                           "echo \"[$API_TOKEN]\"; " + CURL + f"-d x https://one.test:{TLS}/t/app/git-receive-pack; "
                           + CURL + f"https://two.test:{TLS}/x")
    box.row("[]" in out(result), "a project's file that is not trusted names no secret", done)
    # Trusted, it names secrets, but none that its user has named.
    os.makedirs(f"{box.place.home}/.config/sandglass", exist_ok=True)
    for folder in (".config", ".config/sandglass"):
        box.place.own(f"{box.place.home}/{folder}")
    box.place.write(f"{box.place.home}/.config/sandglass/policy.yaml",
                    json.dumps({"version": 1, "secrets": [secret()]}), 0o600)
    theirs = [secret(hosts=[f"two.test:{TLS}"], variable="API_TOKEN", **{"from": "file:~/token"}),
              secret(name="theirs", **{"from": "file:~/token"}, header="X-Theirs: {value}")]
    box.place.write(f"{box.place.src}/.sandglass/policy.yaml",
                    json.dumps({"version": 1, "secrets": theirs, "network": NET}), 0o644)
    box.place.run([SANDGLASS, "policy", "trust", f"{box.place.src}/.sandglass/policy.yaml"])
    script = CURL + (f"-H \"Authorization: Bearer $API_TOKEN\" -H \"X-Theirs: $THEIRS\" https://one.test:{TLS}/u; ")
    box.tls.take()
    done = box.place.run([SANDGLASS, "run", "-c", script], env=box.place.env(API_TOKEN=box.canary))
    seen = (box.tls.take() or [""])[0]
    box.printed += (done.out + done.err).encode()
    box.row(header(seen, "authorization") == f"Bearer {box.canary}" and header(seen, "x-theirs") == box.filed
            and "your own policy file has a secret of that name" in done.err,
            "a trusted project's file replaces no secret of the user's, and that is said", done, seen)
    os.unlink(f"{box.place.home}/.config/sandglass/policy.yaml")
    os.unlink(f"{box.place.src}/.sandglass/policy.yaml")


def hidden(box):
    result, done = box.run({"network": NET, "secrets": [secret()]},
                           CURL + f"-H \"Authorization: Bearer $API_TOKEN\" https://one.test:{TLS}/forms | "
                           "tee /sand/tmp/kept | cat; wc -c </sand/tmp/kept")
    seen = (box.tls.take() or [""])[0]
    box.row(holds(seen.encode(), box.canary), "control: the server had the value, and said it back", done)
    box.row(result and out(result) == "0\n" and not holds(done.out.encode(), box.canary) and
            any(row["rule"] == "network.secret" for row in result["denials"]),
            "what the server says back does not come, and the result says why", done)
    box.place.write(f"{box.place.src}/said", "\n".join(forms(f"Bearer {box.canary}")), 0o644)
    result, done = box.run({"network": NET, "secrets": [secret()]}, "cat said")
    os.unlink(f"{box.place.src}/said")
    box.row(result and "****" in out(result) and not holds(done.out.encode(), box.canary),
            "a result holds it neither raw, nor in base64, nor percent-encoded", done)
    result, done = box.run({"network": NET, "secrets": [secret()]}, "true", "--allow-host", "bad host")
    shown = box.place.run([SANDGLASS, "policy", "show", "--policy", f"{box.place.top}/policy.json"],
                          env=box.place.env(API_TOKEN=box.canary))
    box.printed += (shown.out + shown.err).encode()
    box.row('from: "env:API_TOKEN"' in shown.out and "Bearer {value}" in shown.out,
            "policy show says from where and whereto", shown)


def nowhere(box):
    """After all of it."""
    found, read = [], 0
    mine = (f"{box.place.home}/token", f"{box.place.home}/tell")
    for top, _, names in os.walk(box.place.top):
        for name in names:
            path = os.path.join(top, name)
            if path in mine or not os.path.isfile(path) or os.path.islink(path):
                continue
            read += 1
            with open(path, "rb") as f:
                data = f.read()
            if any(holds(data, value) for value in (box.canary, box.filed, box.told)):
                found.append(path)
    box.row(read > 3 and not found, "no file that was written holds one, raw or encoded", found, read)
    box.row(len(box.printed) > 1000 and
            not any(holds(box.printed, value) for value in (box.canary, box.filed, box.told)),
            "nothing that was printed does")
    log = b"".join(open(os.path.join(top, n), "rb").read() for top, _, names in os.walk(box.place.top)
                   for n in names if n.endswith(".jsonl"))
    box.row(b"one.test" in log, "control: the audit log was among the files", len(log))


PARTS = (inspected, requests, replaced, sources, hidden, nowhere)


if __name__ == "__main__":
    sys.exit(run_parts(PARTS, lambda keys: (Server(TLS, keys.pair("one")), Server(PLAIN)), Box))
