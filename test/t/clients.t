#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Real clients against real servers (lib/servers.py) by a private CA, in a network of the test's
own: each reaches its server bare, inside with a rule on the transparent path and by the proxy
variables, and not with a rule for another host.
"""

import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import debs  # noqa: E402
import servers  # noqa: E402
import tap  # noqa: E402
import world as worlds  # noqa: E402
from place import SANDGLASS, USER, Place, identities_once  # noqa: E402
from world import ALLOWED, OTHER  # noqa: E402

worlds.PORTS = (80,)  # the others are the servers'
HOOK = "curl -m 2 http://evil.test/ || busybox nc -w 1 9.9.9.9 80 </dev/null || true"
TRUST = "; ".join(f"export {name}=$PWD/ca.pem" for name in
                  ("CURL_CA_BUNDLE", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO", "PIP_CERT",
                   "npm_config_cafile")) + "; "
NO_VARIABLES = "unset HTTP_PROXY http_proxy HTTPS_PROXY https_proxy ALL_PROXY all_proxy NO_PROXY no_proxy; "
# Each in a directory of its own; a way that works has to be the same for all.
BEGIN = "set -e; here=$PWD; work=$(mktemp -d); cd $work; cp $here/ca.pem .; " + TRUST

JAVA = """
import java.net.URI;
import java.net.http.*;
class Get {
    public static void main(String[] a) throws Exception {
        var get = HttpRequest.newBuilder(URI.create(a[0])).build();
        System.out.print(HttpClient.newHttpClient().send(get, HttpResponse.BodyHandlers.ofString()).body());
    }
}
"""

NODE = "fetch('https://files.test/hello').then(r => r.text()).then(t => process.stdout.write(t))" \
    ".catch(e => { console.log(String(e.cause || e)); process.exit(1) })"
SSH = "ssh -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
PIP = "-m pip install -q --disable-pip-version-check --no-cache-dir --no-build-isolation " \
    "--index-url https://pip.test/simple/"

# name -> (rule, script, what it prints, does it know proxy variables)
CLIENTS = {
    "curl": ("files.test", "curl -sS -m 20 https://files.test/hello", "hello of files", True),
    "wget": ("files.test", "wget -q --ca-certificate=ca.pem -O - https://files.test/hello",
             "hello of files", True),
    "python's urllib": ("files.test", "python3 -c \"import urllib.request as r; "
                        "print(r.urlopen('https://files.test/hello').read().decode())\"",
                        "hello of files", True),
    "node's fetch": ("files.test", f'node -e "{NODE}"', "hello of files", False),
    "java's HttpClient": ("files.test", "java -Xshare:auto -XX:TieredStopAtLevel=1 "
                          "-Djavax.net.ssl.trustStore=$here/truststore "
                          "-Djavax.net.ssl.trustStorePassword=changeit -cp $here Get "
                          "https://files.test/hello", "hello of files", False),
    "git over https": ("git.test", "git clone -q https://git.test/app.git; git -C app log --oneline",
                       "first of app", True),
    "git over ssh": ("git.test:22", f"export GIT_SSH_COMMAND='{SSH}'; git clone -q "
                     "ssh://git@git.test/app.git; git -C app log --oneline", "first of app", False),
    "npm": ("npm.test", "echo '{}' >package.json; npm install --registry=https://npm.test/ --cache=$PWD/c "
            "--no-audit --no-fund --fetch-retries=0 hello >&2; node -p \"require('hello')\"",
            "hello of npm", True),
    "pip": ("pip.test", f"python3 {PIP} --target=t hello >&2; cd t; python3 -c "
            "'import hello; print(hello.SAYS)'", "hello of pip", True),
    "go": ("go.test", "export GOPROXY=https://go.test GONOSUMDB=* GONOSUMCHECK=1 GOFLAGS=-mod=mod "
           "GOPATH=$PWD/p GOCACHE=$PWD/b GOSUMDB=off; go mod download -x go.test/hello@v1.0.0; "
           "cat p/pkg/mod/go.test/hello@v1.0.0/hello.go; chmod -R u+w p", "hello of go", True),
    "psql": ("db.test:5432", "psql -At -h db.test -U someone -d postgres -c \"select 'hello of ' || 'sql'\"",
             "hello of sql", False),
    "redis-cli": ("db.test:6379", "redis-cli -h db.test set a 'hello of redis' >&2; "
                  "redis-cli -h db.test get a", "hello of redis", False),
}


def prepare(place, ca):
    with open(ca, encoding="ascii") as handle:
        place.write(f"{place.src}/ca.pem", handle.read(), 0o644)
    place.write(f"{place.src}/Get.java", JAVA, 0o644)
    done = place.run(["javac", "Get.java"])
    tap.ok(done.status == 0, f"the client in java is built ({place.who.name})", done)
    done = place.run(["keytool", "-importcert", "-noprompt", "-alias", "ca", "-file", "ca.pem",
                      "-keystore", "truststore", "-storepass", "changeit", "-storetype", "pkcs12"])
    tap.ok(done.status == 0, f"and it trusts the private CA ({place.who.name})", done)


def inside(place, rule, script):
    done = place.run([SANDGLASS, "run", "--json", "--timeout", "100s", "--allow-host", rule, "-c", script],
                     timeout=120)
    try:
        result = json.loads(done.out)
        return result, (result["error"], result["stdout"], result["stderr"]["text"], result["denials"])
    except ValueError:
        return {"ok": False, "stdout": {"text": ""}, "denials": []}, done


def elsewhere(seen):
    """What came to any place but the web server's."""
    return [row for row in seen if row[0] in ("tcp", "udp") and (row[1], row[2]) != (ALLOWED, 443)]


def client(place, world, name):
    rule, script, says, variables = CLIENTS[name]
    variables &= place.who.uid in (0, os.geteuid())  # what they lead to does not depend on who asks
    who, hooked = place.who.name, name in ("npm", "pip")
    world.forget()
    done = place.run(["sh", "-c", BEGIN + script])
    tap.ok(done.status == 0 and says in done.out, f"{name}: bare ({who})", done)
    seen = world.forget()
    if hooked:
        tap.ok(elsewhere(seen), f"{name}: bare, its hook phones home ({who})", seen)
    for way, before in [("transparent", NO_VARIABLES)] + [("variables", "")] * variables:
        result, done = inside(place, rule, before + BEGIN + script)
        tap.ok(result["ok"] and says in result["stdout"]["text"], f"{name}: inside, {way} ({who})", done)
    away = elsewhere(world.forget())
    if hooked:
        tap.ok(not away and not any(q[0] == "evil.test" for q in world.last_queries),
               f"{name}: a hook phones home, and not one packet leaves ({who})", away, world.last_queries)
        tap.ok(any(row["target"].startswith("evil.test") for row in result["denials"]),
               f"{name}: the result says where it wanted to go ({who})", result)
    result, done = inside(place, "files.test:81", NO_VARIABLES + BEGIN + script)
    host, _, port = rule.partition(":")
    tap.ok(not result["ok"] and says not in result["stdout"]["text"] and
           not [row for row in world.forget() if row[0] != "udp"] and not world.last_queries and
           any(row["target"].startswith(host) for row in result["denials"]),
           f"{name}: refused without its rule, and named ({who})", done, world.seen)


def pushes(place, git):
    """Not inspected: a rule for the host is a way to push, and says so."""
    who = place.who.name
    ways = {"https": ("git.test", "https://git.test/app.git", ""),
            "ssh": ("git.test:22", "ssh://git@git.test/app.git", f"export GIT_SSH_COMMAND='{SSH}'; ")}
    for way, (rule, url, before) in ways.items():
        mine = f"refs/heads/{who}-{way}"
        script = BEGIN + before + f"git clone -q {url} app; cd app; git push -q {url} HEAD:{mine}"
        old = servers.refs(git)
        result, done = inside(place, "files.test", NO_VARIABLES + script)
        tap.ok(not result["ok"] and servers.refs(git) == old, f"git over {way}: no push without a rule ({who})",
               done)
        result, done = inside(place, rule, NO_VARIABLES + script)
        tap.ok(result["ok"] and mine in servers.refs(git), f"git over {way}: a push with it ({who})", done)
    place.write(f"{place.src}/policy.yaml", "version: 1\nnetwork: {allow: ['git.test:22']}\n", 0o644)
    place.run([SANDGLASS, "policy", "trust", "policy.yaml"])
    said = place.run([SANDGLASS, "policy", "check", "policy.yaml"])
    tap.ok("push possible" in said.out + said.err, f"policy check says that a push is possible ({who})", said)


# Who trusts the private CA bare does so by the host's store; inside, by what inspection hands in.
INSPECTED = ("curl", "wget", "python's urllib", "node's fetch", "git over https", "npm", "pip", "go")


def inspected(place, git):
    """The same clients with nothing set, through inspection, and git's writes."""
    who = place.who.name

    def run(network, script):
        place.write(f"{place.out}/policy.yaml", f"version: 1\nnetwork: {network}\n", 0o644)
        done = place.run([SANDGLASS, "run", "--json", "--timeout", "100s", "--policy", f"{place.out}/policy.yaml",
                          "-c", script], timeout=120)
        result = json.loads(done.out) if done.out.startswith("{") else {"ok": False, "denials": [], "stdout": {"text": ""}}
        return result, done
    begin = "set -e; here=$PWD; work=$(mktemp -d); cd $work; cp $here/ca.pem .; "
    for name in INSPECTED:
        rule, script, says, _ = CLIENTS[name]
        script = script.replace("--ca-certificate=ca.pem ", "")
        result, done = run(f"{{allow: [{rule}], inspect: [{rule}]}}", NO_VARIABLES + begin + script)
        tap.ok(result["ok"] and says in result["stdout"]["text"], f"{name}: inspected ({who})", done)
    mine, old = f"refs/heads/{who}-inspected", servers.refs(git)
    script = NO_VARIABLES + begin + "git clone -q https://git.test/app.git app; cd app; echo fetched; " \
        f"git push -q https://git.test/app.git HEAD:{mine}"
    for more in ("", ", push: [git.test/other]"):
        result, done = run(f"{{allow: ['*:*'], inspect: [git.test]{more}}}", script)
        tap.ok("fetched" in result["stdout"]["text"] and not result["ok"] and servers.refs(git) == old and
               any("push" in row["rule"] for row in result["denials"]),
               f"git, inspected{more}: fetch works, push does not, with every host allowed ({who})", done)
    result, done = run("{allow: [git.test], inspect: [git.test], push: [git.test/app]}", script)
    tap.ok(result["ok"] and mine in servers.refs(git), f"git, inspected: a push with its grant ({who})", done)


def main():
    if "CLIENTS_PACKAGES" not in os.environ:
        with tempfile.TemporaryDirectory(prefix="sgd.") as top:
            os.chmod(top, 0o755)
            env = debs.unpack(top, "postgresql", "redis-server", "redis-tools", "python3-asyncssh")
            os.environ["CLIENTS_PACKAGES"] = json.dumps([top, env])
            return subprocess.run([sys.executable, *sys.argv], check=False).returncode
    top, env = json.loads(os.environ["CLIENTS_PACKAGES"])
    world = worlds.begin()
    git = f"{world.top}/git"
    os.mkdir(git)
    world.names.update({**{name: [ALLOWED] for name in (*servers.NAMES, "db.test")}, "evil.test": [OTHER]})
    world.account(USER)
    ca, chain = servers.authority(world.top)
    world.trust(ca)
    servers.repository(git)
    files = {"files.test": {"/hello": b"hello of files\n"}, "npm.test": servers.npm_files(HOOK),
             "pip.test": servers.pip_files(HOOK), "go.test": servers.go_files()}
    servers.web(world, chain, files, git)
    serve = servers.Servers(world.top, env)
    try:
        for what, up in (("ssh", serve.ssh(git)), ("redis", serve.redis()), ("postgres", serve.postgres(USER))):
            tap.ok(up is True, f"a server of {what}", up)
        for who in identities_once():
            place = Place(who)
            prepare(place, ca)
            for name in CLIENTS:
                if not sys.argv[1:] or name in sys.argv[1:]:
                    tap.attempt(f"{name} ({who.name})", client, place, world, name)
            tap.attempt(f"pushes ({who.name})", pushes, place, git)
            tap.attempt(f"inspected ({who.name})", inspected, place, git)
            place.close()
    finally:
        serve.close()
        world.close()
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
