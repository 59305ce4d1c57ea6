#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Package managers do inside what they do outside.

The same steps run bare and then through sandglass, in the same place, over the
same files; every package brings names that are protected elsewhere. What is
there afterwards must be the same: names, modes, contents, links. The control
is that the bare run succeeds and brings the names.
"""

import hashlib
import io
import json
import os
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
import textwrap

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import tap  # noqa: E402
from place import PATH, Place, identities_once  # noqa: E402

PRUNED = ("node_modules", ".venv", "target", "vendor", "dist", "build")
LIMIT = 240

# Names that a package may bring, with what a harmless one holds.
BROUGHT = {
    ".npmrc": "fund=false\n", ".envrc": "export A=1\n", ".vscode/settings.json": "{}\n",
    ".idea/x.iml": "<x/>\n", ".husky/pre-commit": "true\n", ".yarnrc.yml": "a: b\n",
    ".claude/settings.json": "{}\n", "mise.toml": "[tools]\n", "lefthook.yml": "a: b\n",
    ".cargo/config.toml": "[term]\nquiet = true\n", ".mcp.json": "{}\n",
}
# A git directory as fixtures of packages have them.
FIXTURE = {"HEAD": "ref: refs/heads/main\n", "config": "[core]\n\tbare = true\n",
           "objects/info/x": "", "refs/heads/x": ""}


def brought(below="", fixture="fixtures/repo.git"):
    files = {below + name: text for name, text in BROUGHT.items()}
    files.update({f"{below}{fixture}/{name}": text for name, text in FIXTURE.items()})
    return files


def put(place, files, top=None):
    for name, content in files.items():
        path = os.path.join(top or place.src, name)
        folder = os.path.dirname(path)
        missing = []
        while not os.path.isdir(folder):
            missing.append(folder)
            folder = os.path.dirname(folder)
        for made in reversed(missing):
            os.mkdir(made, 0o755)
            place.own(made)
        with open(path, "wb") as handle:
            handle.write(content if isinstance(content, bytes) else content.encode())
        os.chmod(path, 0o644)
        place.own(path)


def tarball(files):
    """As npm packs, with the names that it would leave out."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as archive:
        for name, content in sorted(files.items()):
            info = tarfile.TarInfo("package/" + name)
            info.size, info.mode = len(content.encode()), 0o644
            archive.addfile(info, io.BytesIO(content.encode()))
    return raw.getvalue()


def tree(top):
    """Every path below: kind, mode, and content or target."""
    found = {}
    for path, folders, files in os.walk(top):
        for name in folders + files:
            full = os.path.join(path, name)
            st = os.lstat(full)
            what = ""
            if stat.S_ISLNK(st.st_mode):
                what = os.readlink(full)
            elif stat.S_ISREG(st.st_mode):
                with open(full, "rb") as handle:
                    what = hashlib.sha256(handle.read()).hexdigest()
            found[os.path.relpath(full, top)] = (stat.S_IFMT(st.st_mode),
                                                 stat.S_IMODE(st.st_mode), what)
    return found


def different(bare, inside, loose):
    """Paths that are not the same; of those that loose names the content may differ."""
    lines = []
    for name in sorted(set(bare) | set(inside)):
        a, b = bare.get(name), inside.get(name)
        if a and b and any(word in f"/{name}" for word in loose):
            a, b = a[:2], b[:2]
        if a != b:
            lines.append(f"{name}: bare {a}, inside {b}")
    return lines


class Manager:
    """What is there, the steps, what must have come, whose content may differ, what it shows."""

    def __init__(self, name, files, steps, comes, loose=(), prepare="", tools=None):
        self.name, self.files, self.steps, self.comes = name, files, steps, comes
        self.loose, self.prepare, self.tools = loose, prepare, tools


def npm_files(name):
    package = {"package.json": json.dumps({"name": "dep", "version": "1.0.0", "main": "main.js",
                                           "scripts": {"postinstall": "echo built >.built"}}),
               "main.js": "module.exports = 42;\n"}
    other = {"package.json": json.dumps({"name": "other", "version": "2.0.0", "bin": "run.js"}),
             "run.js": "#!/usr/bin/env node\nconsole.log('ran');\n"}
    return {
        "package.json": json.dumps({"name": name, "version": "0.0.1", "private": True,
                                    "dependencies": {"dep": "file:tar/dep-1.0.0.tgz",
                                                     "other": "file:tar/other-2.0.0.tgz"},
                                    "pnpm": {"onlyBuiltDependencies": ["dep"]}}),
        "tar/dep-1.0.0.tgz": tarball({**package, **brought()}),
        "tar/other-2.0.0.tgz": tarball({**other, **brought()}),
        ".npmrc": "audit=false\nfund=false\nupdate-notifier=false\n",
    }


NPM = Manager("npm ci", npm_files("n"), r"""
    npm ci --offline --cache "$TMPDIR/npm" && node -e 'if (require("dep") != 42) throw 1' &&
    npx --offline other""", ["node_modules/dep/.npmrc", "node_modules/dep/.vscode/settings.json",
                             "node_modules/other/.envrc", "node_modules/dep/fixtures/repo.git/HEAD",
                             "node_modules/dep/.built"],
              prepare='npm install --package-lock-only --offline --cache "$TMPDIR/npm0"')

# The store is named in what pnpm writes down, and so is the time.
PNPM = Manager("pnpm install", npm_files("p"), r"""
    node "$TOOLS/node_modules/pnpm/bin/pnpm.cjs" install --offline --store-dir "$TMPDIR/store" &&
    node -e 'if (require("dep") != 42) throw 1' && node_modules/.bin/other""",
               ["node_modules/dep/.npmrc", "node_modules/dep/.vscode/settings.json",
                "node_modules/other/.envrc", "node_modules/dep/fixtures/repo.git/HEAD"],
               loose=("/node_modules/.modules.yaml", "/node_modules/.pnpm-workspace-state"),
               tools="pnpm@9")

CARGO = Manager("cargo build", {
    "Cargo.toml": '[package]\nname = "top"\nversion = "0.1.0"\nedition = "2018"\n\n'
                  '[dependencies]\ndep = { path = "vendor/dep" }\nother = { path = "lib/other" }\n',
    "src/main.rs": 'fn main() { println!("{}", dep::f() + other::f()); }\n',
    "vendor/dep/Cargo.toml": '[package]\nname = "dep"\nversion = "0.1.0"\nedition = "2018"\n',
    "vendor/dep/src/lib.rs": "pub fn f() -> u32 { 40 }\n",
    "vendor/dep/build.rs": textwrap.dedent("""
        use std::{env, fs, path::Path};
        fn main() {
            let out = env::var("OUT_DIR").unwrap();
            for name in [".vscode", ".husky", "repo.git/objects", "repo.git/refs"] {
                fs::create_dir_all(Path::new(&out).join(name)).unwrap();
            }
            for name in [".vscode/x", ".husky/pre-commit", ".envrc", "repo.git/HEAD"] {
                fs::write(Path::new(&out).join(name), "x").unwrap();
            }
            println!("cargo:rerun-if-changed=build.rs");
        }
        """),
    **brought("vendor/dep/"),
    "lib/other/Cargo.toml": '[package]\nname = "other"\nversion = "0.1.0"\nedition = "2018"\n',
    "lib/other/src/lib.rs": "pub fn f() -> u32 { 2 }\n", **brought("lib/other/"),
    ".cargo/config.toml": "[build]\nincremental = false\n",
}, r"""
    export CARGO_HOME="$TMPDIR/cargo"
    cargo build --offline && [ "$(target/debug/top)" = 42 ] && cargo build --offline --release""",
                ["target/debug/top", "Cargo.lock", "vendor/dep/.vscode/settings.json"],
                loose=("/target/.rustc_info.json", "/target/debug/.fingerprint/",
                       "/target/release/.fingerprint/", "/build/"),
                prepare="git init -q vendor/dep; git init -q lib/other")

GO = Manager("go mod vendor", {
    "go.mod": "module example.com/top\n\ngo 1.18\n\nrequire example.com/dep v1.0.0\n\n"
              "replace example.com/dep => ./deps/dep\n",
    "main.go": 'package main\n\nimport (\n\t"fmt"\n\n\t"example.com/dep"\n)\n\n'
               "func main() { fmt.Println(dep.F()) }\n",
    "deps/dep/go.mod": "module example.com/dep\n\ngo 1.18\n",
    "deps/dep/dep.go": 'package dep\n\nimport "embed"\n\n'
                       "//go:embed all:.vscode .envrc .npmrc all:.husky fixtures\n"
                       "var files embed.FS\n\nfunc F() int {\n"
                       '\tif _, e := files.ReadFile(".vscode/settings.json"); e != nil {\n'
                       "\t\treturn 0\n\t}\n\treturn 42\n}\n",
    **brought("deps/dep/"),
}, r"""
    export GOFLAGS=-mod=mod GOPROXY=off GOSUMDB=off GOTOOLCHAIN=local GOCACHE="$TMPDIR/go" \
        GOPATH="$TMPDIR/gopath"
    go mod vendor && GOFLAGS=-mod=vendor go build -trimpath -buildvcs=false -o dist/top . &&
    [ "$(dist/top)" = 42 ]""",
             ["vendor/example.com/dep/.vscode/settings.json", "vendor/example.com/dep/.envrc",
              "vendor/example.com/dep/fixtures/repo.git/HEAD", "dist/top"])

PIP = Manager("pip install -e .", {
    "pyproject.toml": '[build-system]\nrequires = ["setuptools"]\n'
                      'build-backend = "setuptools.build_meta"\n\n'
                      '[project]\nname = "top"\nversion = "0.1"\n\n'
                      '[project.scripts]\ntop = "top:main"\n\n'
                      '[tool.setuptools]\npackages = ["top"]\ninclude-package-data = true\n\n'
                      '[tool.setuptools.package-data]\ntop = ["' + '", "'.join(brought()) + '"]\n',
    "top/__init__.py": "def main():\n    print(42)\n", **brought("top/"),
}, r"""
    export PYTHONDONTWRITEBYTECODE=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 \
        PIP_NO_COMPILE=1
    python3 -m venv --system-site-packages .venv &&
    .venv/bin/pip install -q --no-index --no-build-isolation -e . && [ "$(.venv/bin/top)" = 42 ] &&
    .venv/bin/pip install -q --no-index --no-build-isolation --target build/copy .""",
              [".venv/bin/top", "top.egg-info/PKG-INFO", "build/copy/top/.vscode/settings.json"],
              loose=(".pyc", "RECORD"))


def tools(what):
    """Where npm put it, or why it could not."""
    top = tempfile.mkdtemp(prefix="sgt.tools.", dir=os.environ.get("TMPDIR", "/tmp"))
    os.chmod(top, 0o755)
    # With the caller's own configuration of npm: the registry may be a mirror.
    done = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--fetch-retries=1",
                           "--fetch-timeout=20000", "--prefix", top, what], cwd=top,
                          capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        shutil.rmtree(top)
        return None, (done.stderr or "no answer").strip().split("\n")[0][:200]
    subprocess.run(["chmod", "-R", "a+rX", top], check=True)
    return top, ""


def same(who, manager, tools_at):
    place = Place(who)
    try:
        env = {"TOOLS": place.src + "/.tools"} if tools_at else {}
        put(place, manager.files)
        os.unlink(place.probe)
        if tools_at:
            shutil.copytree(tools_at, place.src + "/.tools", symlinks=True)
        if manager.prepare:
            prepared = place.run(["sh", "-c", manager.prepare], timeout=LIMIT)
            if prepared.status != 0:
                tap.ok(False, f"{manager.name}, {who.name}", prepared)
                return
        keep = f"{place.top}/keep"
        place.run(["cp", "-a", place.src, f"{place.tmp}/keep"])
        os.rename(f"{place.tmp}/keep", keep)
        script = ["sh", "-c", "umask 022\n" + textwrap.dedent(manager.steps)]
        bare = place.run(script, env=env, timeout=LIMIT)
        outside = tree(place.src)
        absent = [name for name in manager.comes if not os.path.exists(f"{place.src}/{name}")]
        names = os.listdir(place.src)
        place.run(["rm", "-rf", "--", *names])
        place.run(["cp", "-a", f"{keep}/.", place.src])
        given = ["--env", f"TOOLS={place.src}/.tools"] if tools_at else []
        done = place.run(place.inside("--json", *given) + script, timeout=LIMIT)
        within = tree(place.src)
        try:
            result = json.loads(done.out)
        except ValueError:
            result = {}
        flagged = (result.get("changes") or {}).get("flagged")
        about = [f for f in flagged or []
                 if any(part in PRUNED for part in f["path"].split("/"))]
        tap.ok(bare.status == 0 and not absent, f"control: {manager.name} works bare, {who.name}",
               f"not there: {absent}", bare)
        tap.ok(bare.status == 0 and done.status == 0 and not absent,
               f"{manager.name}: exit 0, {who.name}", str(done)[-2500:])
        lines = different(outside, within, manager.loose)
        tap.ok(bare.status == 0 and not absent and not lines,
               f"{manager.name}: the same {len(outside)} files, {who.name}", *lines[:30])
        tap.ok(flagged is not None and not about and not absent,
               f"{manager.name}: nothing flagged in what it fills, {who.name}", about or flagged)
        if flagged:
            tap.note(f"flagged elsewhere: {[(f['path'], f['action']) for f in flagged][:5]}")
    finally:
        place.run(["sh", "-c", "chmod -R u+rwX src keep tmp; rm -rf src/* keep/* tmp/*"],
                  cwd=place.top)
        place.close()


def main():
    wanted = sys.argv[1:]
    for manager in (NPM, PNPM, CARGO, GO, PIP):
        if wanted and manager.name.split()[0] not in wanted:
            continue
        tools_at = None
        if manager.tools:
            tools_at, why = tools(manager.tools)
            if not tools_at:
                tap.skip(manager.name, f"npm-registry: {why}")
                continue
        program = manager.name.split()[0] if not manager.tools else "node"
        if program != "pip" and not shutil.which(program, path=PATH):
            tap.ok(False, f"{manager.name}: {program} is there (tools/install-deps --full)")
            continue
        for who in identities_once():
            tap.attempt(f"{manager.name}, {who.name}", same, who, manager, tools_at)
        if tools_at:
            shutil.rmtree(tools_at)
    return tap.done()


sys.exit(main())
