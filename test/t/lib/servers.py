# SPDX-License-Identifier: Apache-2.0
"""Real servers for real clients, in the network of the test's own (world.py): git by https and ssh,
registries of npm, pip and go, files, PostgreSQL, Redis; TLS by a private CA."""

import base64
import hashlib
import http.server
import io
import json
import os
import socket
import ssl
import subprocess
import sys
import tarfile
import textwrap
import threading
import time
import zipfile

NAMES = ("files.test", "git.test", "npm.test", "pip.test", "go.test")


def openssl(*args, **more):
    subprocess.run(["openssl", *args], check=True, capture_output=True, **more)


def authority(top):
    """A private CA and a certificate of all names. Returns (CA's file, chain's file)."""
    ca, leaf = f"{top}/ca.pem", f"{top}/leaf.pem"
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    openssl("req", "-x509", *curve, "-keyout", f"{top}/ca.key", "-out", ca, "-days", "2",
            "-subj", "/CN=the test's own CA", "-addext", "basicConstraints=critical,CA:TRUE",
            "-addext", "keyUsage=critical,keyCertSign,cRLSign")
    openssl("req", *curve, "-keyout", f"{top}/leaf.key", "-out", f"{top}/leaf.csr", "-subj", "/CN=a")
    with open(f"{top}/leaf.ext", "w", encoding="ascii") as handle:
        handle.write("subjectAltName=" + ",".join(f"DNS:{name}" for name in NAMES) +
                     "\nextendedKeyUsage=serverAuth\n")
    openssl("x509", "-req", "-in", f"{top}/leaf.csr", "-CA", ca, "-CAkey", f"{top}/ca.key",
            "-CAcreateserial", "-days", "2", "-extfile", f"{top}/leaf.ext", "-out", leaf)
    with open(leaf, "a", encoding="ascii") as out, open(f"{top}/leaf.key", encoding="ascii") as key:
        out.write(key.read())
    return ca, leaf


def packed(files, mode):
    """A tar.gz of name -> text."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(text), 0o644
            tar.addfile(member, io.BytesIO(text.encode()))
    return out.getvalue()


def npm_files(hook):
    package = {"name": "hello", "version": "1.0.0", "main": "index.js",
               "scripts": {"postinstall": hook}}
    tgz = packed({"package/package.json": json.dumps(package),
                  "package/index.js": "module.exports = 'hello of npm'\n"}, "w:gz")
    dist = {"tarball": "https://npm.test/hello-1.0.0.tgz",
            "integrity": "sha512-" + base64.b64encode(hashlib.sha512(tgz).digest()).decode()}
    about = {"name": "hello", "dist-tags": {"latest": "1.0.0"},
             "versions": {"1.0.0": {**package, "dist": dist, "hasInstallScript": True}}}
    return {"/hello": json.dumps(about).encode(), "/hello-1.0.0.tgz": tgz}


def pip_files(hook):
    setup = f"import os\nos.system({hook!r})\nfrom setuptools import setup\n" \
        "setup(name='hello', version='1.0', py_modules=['hello'])\n"
    sdist = packed({"hello-1.0/setup.py": setup, "hello-1.0/hello.py": "SAYS = 'hello of pip'\n",
                    "hello-1.0/PKG-INFO": "Metadata-Version: 2.1\nName: hello\nVersion: 1.0\n"}, "w:gz")
    digest = hashlib.sha256(sdist).hexdigest()
    page = f'<a href="/hello-1.0.tar.gz#sha256={digest}">hello-1.0.tar.gz</a>'
    return {"/simple/hello/": page.encode(), "/hello-1.0.tar.gz": sdist}


def go_files():
    module, out = "go.test/hello", io.BytesIO()
    with zipfile.ZipFile(out, "w") as packet:
        packet.writestr(f"{module}@v1.0.0/go.mod", f"module {module}\n")
        packet.writestr(f"{module}@v1.0.0/hello.go", 'package hello\nconst Says = "hello of go"\n')
    at = f"/{module}/@v/"
    return {at + "list": b"v1.0.0\n", at + "v1.0.0.info": b'{"Version":"v1.0.0"}',
            at + "v1.0.0.mod": f"module {module}\n".encode(), at + "v1.0.0.zip": out.getvalue()}


class Web(http.server.BaseHTTPRequestHandler):
    """Files by host and path, and git's smart protocol by its own program."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self):
        host = (self.headers.get("Host") or "").split(":")[0]
        self.server.world.note("web", host, self.command, self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        if host == "git.test":
            self.git(body)
            return
        data = self.server.files.get(host, {}).get(self.path.split("?")[0])
        kind = "text/html" if data and data.startswith(b"<a") else "application/octet-stream"
        self.reply("200 OK" if data is not None else "404 Not Found", {"Content-Type": kind},
                   data or b"none\n")

    do_GET = do_POST = do_HEAD = answer

    def reply(self, status, headers, data):
        code, text = status.split(" ", 1)
        self.send_response(int(code), text)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def git(self, body):
        path, _, query = self.path.partition("?")
        env = {"PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": self.server.git, "PATH_INFO": path,
               "QUERY_STRING": query, "REQUEST_METHOD": self.command, "GIT_HTTP_EXPORT_ALL": "1",
               "REMOTE_USER": "someone", "REMOTE_ADDR": "192.0.2.1",
               "CONTENT_TYPE": self.headers.get("Content-Type", ""),
               "CONTENT_LENGTH": str(len(body)), "GIT_CONFIG_COUNT": "1",
               "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*",
               "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
               "GIT_PROTOCOL": self.headers.get("Git-Protocol", "")}
        done = subprocess.run(["git", "http-backend"], input=body, env=env, capture_output=True,
                              check=False)
        head, _, data = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if line)
        self.reply(headers.pop("Status", "200 OK"), headers, data)


def web(world, chain, files, git):
    """On port 443 of every address."""
    class Server(http.server.ThreadingHTTPServer):
        address_family = socket.AF_INET
        daemon_threads = True

        def handle_error(self, request, client_address):
            pass

        def finish_request(self, request, client_address):
            request.settimeout(60)
            with context.wrap_socket(request, server_side=True) as tls:
                try:
                    super().finish_request(tls, client_address)
                finally:
                    tls.unwrap()

        def get_request(self):
            request, peer = super().get_request()
            world.note("tcp", request.getsockname()[0], 443, peer[0], b"")
            return request, peer
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain)
    server = Server(("0.0.0.0", 443), Web)
    server.world, server.files, server.git = world, files, git
    threading.Thread(target=server.serve_forever, daemon=True).start()


SSH = textwrap.dedent("""
    import asyncio, sys, warnings
    warnings.simplefilter('ignore')
    import asyncssh
    class Open(asyncssh.SSHServer):
        def begin_auth(self, _):
            return False
    async def serve(p):
        program, path = p.command.split(' ', 1)
        run = await asyncio.create_subprocess_exec(program, sys.argv[1] + path.strip("'"),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE)
        await p.redirect(stdin=run.stdin, stdout=run.stdout, stderr=run.stderr)
        p.exit(await run.wait())
    async def main():
        await asyncssh.create_server(Open, '', 22, encoding=None, process_factory=serve,
            server_host_keys=[asyncssh.generate_private_key('ssh-ed25519')])
        print('ready', flush=True)
        await asyncio.Event().wait()
    asyncio.run(main())
    """)


class Servers:
    """Processes of it; `env` finds their programs."""

    def __init__(self, top, env):
        self.top, self.env, self.processes = top, {**os.environ, **env}, []

    def start(self, *argv, **more):
        process = subprocess.Popen(argv, env=self.env, stdin=subprocess.DEVNULL, **more)
        self.processes.append(process)
        return process

    def ssh(self, git):
        env = {**self.env, "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory",
               "GIT_CONFIG_VALUE_0": "*"}
        process = subprocess.Popen(["/usr/bin/python3", "-c", SSH, git], env=env, text=True,
                                   stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
        self.processes.append(process)
        return process.stdout.readline() == "ready\n"

    def redis(self):
        self.start("redis-server", "--bind", "0.0.0.0", "--port", "6379", "--save", "", "--dir",
                   self.top, "--protected-mode", "no", stdout=subprocess.DEVNULL)
        return listens(6379)

    def postgres(self, uid):
        """It does not run as root; here root may be a user's own namespace."""
        prefix = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--"]
        with open("/proc/self/uid_map", encoding="ascii") as handle:
            if len(handle.read().split()) == 3 and os.geteuid() == 0 and not can_change(uid):
                prefix = ["unshare", "-U", f"--map-user={uid}", f"--map-group={uid}", "--"]
        data = f"{self.top}/postgres"
        os.mkdir(data)
        if prefix[0] == "setpriv":
            os.chown(data, uid, uid)
        made = subprocess.run([*prefix, "initdb", "-D", data, "-U", "someone", "-A", "trust",
                               "--no-sync", "--no-locale"], env=self.env, capture_output=True,
                              text=True, check=False)
        if made.returncode:
            return made.stderr
        self.start(*prefix, "postgres", "-D", data, "-c", "listen_addresses=0.0.0.0", "-c", "fsync=off",
                   "-c", f"unix_socket_directories={data}", stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
        with open(f"{data}/pg_hba.conf", "a", encoding="ascii") as handle:
            handle.write("host all all 0.0.0.0/0 trust\n")
        return listens(5432)

    def close(self):
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait(20)


def can_change(uid):
    return subprocess.run(["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--",
                           "true"], capture_output=True, check=False).returncode == 0


def listens(port, seconds=30):
    """True once something listens there."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return True
        except OSError:
            time.sleep(0.05)
    return False


def repository(git):
    """A bare one with a commit, that takes pushes. Returns how its refs are now."""
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_AUTHOR_NAME": "a",
           "GIT_AUTHOR_EMAIL": "a@test", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@test"}
    at = f"{git}/app.git"
    for argv in (["init", "-q", "--bare", "-b", "main", at],
                 ["-C", at, "config", "http.receivepack", "true"]):
        subprocess.run(["git", *argv], env=env, check=True)
    tree = subprocess.run(["git", "-C", at, "mktree"], env=env, check=True, input="",
                          capture_output=True, text=True).stdout.strip()
    commit = subprocess.run(["git", "-C", at, "commit-tree", "-m", "first of app", tree], env=env,
                            check=True, capture_output=True, text=True).stdout.strip()
    subprocess.run(["git", "-C", at, "update-ref", "refs/heads/main", commit], env=env, check=True)


def refs(git):
    done = subprocess.run(["git", "-c", "safe.directory=*", "-C", f"{git}/app.git", "for-each-ref"],
                          capture_output=True, text=True, check=False)
    return done.stdout or sys.exit(f"Bail out! {done.stderr}")
