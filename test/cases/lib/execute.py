# SPDX-License-Identifier: Apache-2.0
"""Running one row as one identity: control, ours, inside, outside, what is left behind."""

import json
import os
import re
import selectors
import shlex
import signal
import subprocess
import threading
import time
import traceback

from . import host, peers, schema, sweep, world

KEEP = 1 << 20
DRAIN = 1.5
LEFT_WITHIN = 0.6
SPAWN = 0.02  # a plain spawn on a machine that is not busy takes less
START = 5.0  # until then another sandbox may not have begun the command


class Outcome:
    """What one run did, as seen from outside."""

    def __init__(self):
        self.rc, self.out, self.err = None, b"", b""
        self.bytes, self.exit_s, self.eof_s, self.began = 0, 0.0, 0.0, None
        self.problems, self.packets, self.overdue, self.held = [], 0, False, False
        self.document = None

    def text(self, marker):
        if self.document is not None:
            parts = []
            for name in ("stdout", "stderr"):
                stream = self.document.get(name) or {}
                parts.append(str(stream.get("text", "")))
            whole = "\n".join(parts) + "\n" + self.err.decode("utf-8", "replace")
        else:
            whole = self.out.decode("utf-8", "replace") + "\n" + self.err.decode("utf-8", "replace")
        ran = marker in whole
        return ran, whole.replace(marker + "\n", "", 1).replace(marker, "", 1)

    def code(self):
        if self.document is not None:
            return (self.document.get("error") or {}).get("code")
        lines = self.err.decode("utf-8", "replace").rstrip("\n").split("\n")
        found = re.match(r"sandglass: ([A-Z][A-Z_]+): .", lines[-1])
        return found.group(1) if found else None


def normal(rc):
    """The shell's way to tell a signal, for runs of others."""
    return 128 - rc if isinstance(rc, int) and rc < 0 else rc


def streams(row, names):
    """What the started program gets as stdin: text, nothing, or something odd."""
    given = row.get("stdin")
    if given is None:
        return None, []
    if isinstance(given, str):
        return schema.expand(given, names).encode(), []
    return None, [f"exec {schema.expand(given['redirect'], names, shlex.quote)}"]


class Run:
    """One or several processes started alike, watched until they have ended."""

    def __init__(self, argv, env, cwd, data, deadline, slack, marker=None):
        self.argv, self.env, self.cwd, self.data = argv, env, cwd, data
        self.marker = marker
        self.deadline, self.drain, self.actions = deadline * slack, DRAIN * slack, []
        self.outcome = Outcome()
        self.thread = None

    def beside(self, action):
        """Something that happens outside while the run goes on; waited for at the end."""
        self.thread = threading.Thread(target=action)
        self.thread.start()

    def at(self, seconds, action):
        self.actions.append([seconds, action])

    def go(self):
        start = time.monotonic()
        self.process = subprocess.Popen(
            self.argv, env=self.env, cwd=self.cwd, start_new_session=True,
            stdin=subprocess.PIPE if self.data is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, restore_signals=True)
        self._feed()
        selector = selectors.DefaultSelector()
        for name in ("stdout", "stderr"):
            pipe = getattr(self.process, name)
            os.set_blocking(pipe.fileno(), False)
            selector.register(pipe, selectors.EVENT_READ, name)
        exited = None
        while True:
            now = time.monotonic() - start
            if exited is None and self.process.poll() is not None:
                exited = now
                self.outcome.exit_s = now
            if exited is not None and not selector.get_map():
                break
            if exited is not None and now > exited + self.drain:
                self.outcome.held = True
                break
            if now > self.deadline and exited is None:
                self.outcome.overdue = True
                self._kill()
            self._act(self._since(now))
            self._read(selector, exited)
        self.outcome.eof_s = time.monotonic() - start
        self.outcome.rc = self.process.wait()
        for name in ("stdout", "stderr"):
            getattr(self.process, name).close()
        if self.thread:
            self.thread.join()
        return self.outcome

    def _feed(self):
        if self.data is None:
            return
        try:
            self.process.stdin.write(self.data)
            self.process.stdin.close()
        except BrokenPipeError:
            pass

    def _since(self, now):
        """Seconds since the start, or, with a marker, since the command itself began."""
        if self.marker is None:
            return now
        if self.outcome.began is None and (
                self.marker in self.outcome.err or self.marker in self.outcome.out):
            self.outcome.began = now
        return now - (START if self.outcome.began is None else self.outcome.began)

    def _act(self, now):
        for item in list(self.actions):
            if now >= item[0]:
                self.actions.remove(item)
                item[1](self.process)

    def _wait(self, exited):
        soon = min([a[0] for a in self.actions], default=1.0)
        return 0.01 if exited is not None or soon < 1.0 else 0.02

    def _read(self, selector, exited):
        if not selector.get_map():
            time.sleep(0.002)
            return
        for key, _ in selector.select(self._wait(exited)):
            try:
                data = os.read(key.fd, 1 << 16)
            except BlockingIOError:
                continue
            if not data:
                selector.unregister(key.fileobj)
                continue
            if key.data == "stdout":
                self.outcome.bytes += len(data)
                self.outcome.out = _capped(self.outcome.out, data)
            else:
                self.outcome.err = _capped(self.outcome.err, data)

    def _kill(self):
        for pid in sweep.below(self.process.pid):
            _signal(pid, signal.SIGKILL)
        _signal(self.process.pid, signal.SIGKILL)


def _capped(have, data):
    have += data
    return have if len(have) <= 2 * KEEP else have[:KEEP] + have[-KEEP:]


def _signal(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


class Executor:
    """Runs rows in a worker process; its configuration is the runner's."""

    def __init__(self, settings, services, number):
        self.settings, self.services, self.number = settings, services, number
        self.serial, self.slack = 0, 1.0
        self.naps = self._naps()

    def _naps(self):
        """Durations that are nobody else's, so that a sleep can be told by its arguments."""
        base = 100000 + (self.number % 5000) * 160
        while True:
            for step in range(0, 160, 2):
                yield base + step

    def run(self, row, identity):
        row = schema.merged(row, identity.name)
        began = time.monotonic()
        self.slack = _slack()
        try:
            status, why = self._row(row, identity)
        except subprocess.TimeoutExpired as error:
            status, why = "fail", f"a script of the row hangs: {error}"
        except Exception:  # a broken row must not take the others down with its worker
            status, why = "fail", traceback.format_exc()
        why = re.sub(re.escape(self.settings.lead) + "[0-9a-f]+", "<canary>", why)
        return {"id": row["id"], "as": identity.name, "title": row["title"], "status": status,
                "why": why, "seconds": round(time.monotonic() - began, 2)}

    def _row(self, row, identity):
        reason = peers.reason(row) if self.settings.runner else None
        if reason:
            return "na", reason
        reason = self._cannot(row, identity)
        if reason:
            return "skip", reason
        control = row.get("control")
        if control and control["how"].startswith("off:") and not self.settings.bin:
            if self.settings.control_only:
                return "skip", "its control needs sandglass itself"
            control = None
        if control and not self.settings.no_control:
            problems = self._control(row, control, identity)
            if problems:
                return "fail", "inconclusive: control: " + "; ".join(problems)
        if self.settings.control_only:
            return ("pass", "") if control else ("skip", "has no control")
        problems = self._ours(row, identity)
        return ("fail", "; ".join(problems)) if problems else ("pass", "")

    def _cannot(self, row, identity):
        for need in row.get("needs", []):
            kind, _, what = need.partition(":")
            if not what:
                kind, what = "program", need
            if kind == "program" and not _program(what):
                return f"needs the program {what}"
            if kind == "feature" and not self.settings.features.get(what, {}).get("available"):
                return f"doctor says that this host has no {what}"
            if kind == "home" and not os.path.exists(f"{os.path.expanduser('~')}/{what}"):
                return f"needs ~/{what}"
            if kind == "runner" and os.geteuid() != 0:
                return f"the runner must be {what} to arrange it"
        if row.get("control", {}).get("as") == "runner" and os.geteuid() != 0:
            return "its control must be root's"
        return None

    def _world(self, row, identity, suffix):
        self.serial += 1
        base = self.settings.base
        if row.get("base") == "tmp":
            base = self.settings.tmp_base
        top = f"{base}/{self.number % 100000}-{self.serial}{suffix}"
        return world.World(top, identity, row, self.services, self.settings,
                           lambda: next(self.naps))

    # -- the control: the same attempt where it must succeed

    def _control(self, row, control, identity):
        place = self._world(row, identity, "c")
        try:
            trouble = place.prepare()
            if trouble:
                return [trouble]
            if control.get("setup"):
                status, said = place.shell("set -e\n" + control["setup"])
                if status:
                    return [f"setup failed ({status}): {said.strip()[-200:]}"]
            one = dict(row)
            for key in ("cmd", "argv"):
                if key in control:
                    one.pop("cmd", None)
                    one.pop("argv", None)
                    one[key] = control[key]
            if control["how"].startswith("off:"):
                one["options"] = control.get("options", row.get("options", []))
                one.pop("parallel", None)
                outcomes = self._start(place, one, self._ours_argv(place, one), one)
            else:
                for key in ("kill", "during"):
                    one.pop(key, None)
                    if key in control:
                        one[key] = control[key]
                one.pop("json", None)
                if "launch" in control:
                    one["launch"] = control["launch"]
                one["as_runner"] = control.get("as") == "runner"
                outcomes = self._start(place, one, self._foreign_argv(place, one, control), one)
            problems = self._judge(place, one, control, outcomes, bare=True)
            self._clear()
            return problems
        finally:
            place.close(self.settings.keep)

    def _foreign_argv(self, place, row, control):
        names = place.names
        if "steps" in row and "cmd" not in row and "argv" not in row:
            script = "\n".join(step["cmd"] for step in row["steps"] if "cmd" in step)
            inner = ["bash", "--noprofile", "--norc", "-c", place.script(script)]
        elif "cmd" in row:
            inner = ["bash", "--noprofile", "--norc", "-c", place.script(row["cmd"])]
        else:
            inner = [schema.expand(a, names) for a in row["argv"]]
        how = control["how"]
        if how == "bare":
            return inner
        if how == "userns":
            return ["unshare", "-U", "-r", "-m", "-i", "-n", "-p", "-f", "--mount-proc",
                    "--kill-child", *inner]
        extra = [schema.expand(a, names) for a in control.get("bwrap", [])]
        return ["bwrap", "--ro-bind", "/", "/", "--bind", names["WS"], names["WS"], "--dev",
                "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--unshare-pid", *extra, *inner]

    # -- ours

    def _ours_argv(self, place, row):
        names = place.names
        if self.settings.runner:
            prefix = [p.format(**{k: v for k, v in names.items() if k != "CANARY"},
                               CWD=self._cwd(place, row)) for p in self.settings.runner]
            if "cmd" in row:
                # Not looked up: a row may have put another bash in front.
                return prefix + ["/bin/bash", "--noprofile", "--norc", "-c",
                                 place.script(row["cmd"])]
            return prefix + [schema.expand(a, names) for a in row["argv"]]
        if "args" in row:
            return [self.settings.bin] + [schema.expand(a, names) for a in row["args"]]
        argv = [self.settings.bin, "run"]
        if self.settings.isolation and "--isolation" not in row.get("options", []):
            argv += ["--isolation", self.settings.isolation]
        if "timeout" in row:
            argv += ["--timeout", _duration(row["timeout"])]
        if "grace" in row:
            argv += ["--grace", _duration(row["grace"])]
        for key, value in row.get("env", {}).items():
            argv += ["--env", f"{key}={schema.expand(str(value), names)}"]
        argv += [schema.expand(o, names) for o in row.get("options", [])]
        if row.get("json"):
            argv.append("--json")
        if "cmd" in row:
            return argv + ["-c", place.script(row["cmd"])]
        return argv + [schema.expand(a, names) for a in row["argv"]]

    def _ours(self, row, identity):
        place = self._world(row, identity, "")
        try:
            trouble = place.prepare()
            if trouble:
                return [trouble]
            problems = []
            if "steps" in row:
                for number, step in enumerate(row["steps"], 1):
                    one = {**{k: v for k, v in row.items() if k not in ("steps", "expect")},
                           **step}
                    if "setup" in step:
                        status, said = place.shell("set -e\n" + step["setup"])
                        if status:
                            return [f"setup of step {number} failed: {said.strip()[-200:]}"]
                        place.remember()
                    found = self._one(place, one, step.get("expect", {}))
                    problems += [f"step {number}: {p}" for p in found]
                problems += self._outside(place, row.get("expect", {}))
            else:
                problems = self._one(place, row, row["expect"])
            problems += [f"mount left behind: {m}" for m in place.mounts() - place.mounted]
            if not row.get("reveals") and self._secret(row):
                problems += [f"canary in {os.path.relpath(p, place.top)}" for p in place.leaks()]
            return problems
        finally:
            place.close(self.settings.keep)

    def _one(self, place, row, expect):
        outcomes = self._start(place, row, self._ours_argv(place, row), row, ours=True)
        problems = self._judge(place, row, expect, outcomes, bare=False)
        if not row.get("stays"):  # a session's keeper, until the step that ends it
            problems += self._left()
        return problems

    def _cwd(self, place, row):
        cwd = row.get("cwd", "")
        cwd = schema.expand(cwd, place.names)
        return cwd if cwd.startswith("/") else os.path.normpath(f"{place.names['WS']}/{cwd}")

    def _start(self, place, row, argv, limits, ours=False):
        """Starts the row's program once (or as often as it says) and returns the outcomes."""
        data, redirect = streams(row, place.names)
        lines = [schema.expand(row.get("launch", ""), place.names, shlex.quote)] + redirect
        if row.get("stdout"):
            lines.append(f"exec {schema.expand(row['stdout'], place.names, shlex.quote)}")
        lines = [line for line in lines if line]
        if lines:
            argv = ["bash", "--noprofile", "--norc", "-c",
                    "\n".join(lines) + '\nexec "$@"', "sh", *argv]
        if not limits.get("as_runner"):
            argv = place.identity.argv(argv)
        deadline = limits.get("deadline", 40)
        foreign = not ours or self.settings.runner
        peer = ours and self.settings.runner
        marker = place.marker().encode() if peer and "cmd" in row else None
        runs = []
        for _ in range(limits.get("parallel", 1)):
            run = Run(argv, place.env(), self._cwd(place, row), data, deadline, self.slack,
                      marker)
            if foreign and "timeout" in limits:
                run.at(limits["timeout"], lambda p: _group(p, signal.SIGTERM))
                run.at(limits["timeout"] + 1, lambda p: _group(p, signal.SIGKILL))
            self._plan(run, place, row)
            if ours and not self.settings.runner and limits.get("parallel", 1) == 1:
                run.at(0.15, lambda p, r=run: self._scan(place, p, r))
            runs.append(run)
            run.drain *= 1 + limits.get("parallel", 1) / 10
        if "net" in row.get("expect", {}):
            host.settle()
        before, reached = host.lo_packets(), len(self.services.events)
        outcomes = [runs[0].go()] if len(runs) == 1 else _together(runs)
        outcomes[0].packets = host.lo_packets() - before
        if peer:  # a proxy of its own on the loopback is no leak; what it lets through is
            outcomes[0].packets = len(self.services.events) - reached
        if row.get("json"):
            for outcome in outcomes:
                outcome.document = _document(outcome)
        return outcomes

    def _plan(self, run, place, row):
        for kill in schema.listed(row.get("kill")):
            run.at(kill["after"], lambda p, k=kill: self._send(p, k, run))
        during = row.get("during")
        if during:
            def look():
                status, said = place.shell(during["host"], own=True)
                if status:
                    run.outcome.problems.append(
                        f"during the run, outside: status {status}: {said.strip()[-200:]}")
            run.at(during["after"], lambda _: run.beside(look))

    def _send(self, process, kill, run):
        number = getattr(signal, "SIG" + kill["sig"])
        who = kill.get("who", "front")
        pids = [process.pid]
        if who != "front":
            pids = [p for p in sweep.below(process.pid) if _comm(p).startswith(who)]
            if not pids:
                run.outcome.problems.append(f"no process {who} to kill")
        for pid in pids:
            _signal(pid, number)

    def _scan(self, place, process, run):
        """Our own processes hold no canary, but for the first, whose environment is the caller's."""
        found = set(sweep.processes_with(sweep.below(process.pid), place.shapes))
        until = time.monotonic() + 0.5
        while found:
            time.sleep(0.15 if os.environ.get("SANDGLASS_SANITIZED") else 0.05)
            found &= set(sweep.processes_with(sweep.below(process.pid), place.shapes))
            # A copy of the first on the way to its own program has its memory for a moment, which
            # a busy machine makes longer.
            if time.monotonic() >= until or any(_words(pid) != _words(process.pid) for pid in found):
                break
        for pid in found:
            run.outcome.problems.append(f"canary in the arguments or environment of {_comm(pid)}")

    # -- judging

    def _judge(self, place, row, expect, outcomes, bare):
        problems = []
        for outcome in outcomes:
            problems += outcome.problems
            problems += self._inside(place, row, expect, outcome, bare)
        return problems + self._outside(place, expect)

    def _secret(self, row):
        """Ours may show a canary in no row; others only in those that speak of a secret."""
        return not self.settings.runner or "CANARY" in repr(row)

    def _inside(self, place, row, expect, outcome, bare):
        problems = []
        ran, text = outcome.text(place.marker())
        foreign = bare or self.settings.runner
        rc = normal(outcome.rc) if foreign else outcome.rc
        peer = not bare and self.settings.runner
        must_run = expect.get("ran", schema.runs(expect))
        if "cmd" in row or ("steps" in row and "argv" not in row):
            if must_run and not ran:
                problems.append("the command did not run")
            if not must_run and ran:
                problems.append("the command ran")
        if outcome.overdue:
            problems.append("had to be killed at the deadline")
        if outcome.held != expect.get("held", False) and not (bare and "held" not in expect):
            problems.append(f"output held open after the end: {outcome.held}")
        if "rc" in expect and not (_status(expect["rc"], rc) or peer and _status(
                [normal(r) for r in schema.listed(expect["rc"])], rc)):
            problems.append(f"status {rc}, expected {expect['rc']}")
        problems += self._text(place, expect, text, outcome)
        problems += self._times(expect, outcome, row["kind"] == "perf")
        if "code" in expect and outcome.code() not in schema.listed(expect["code"]):
            problems.append(f"code {outcome.code()}, expected {expect['code']}")
        for path, want in expect.get("result", {}).items():
            problems += _result(outcome.document, path, want, place.names)
        if expect.get("net") == "silent" and outcome.packets:
            what = "connections to the host" if peer else "packets"
            problems.append(f"{outcome.packets} {what} left the sandbox")
        if expect.get("net") == "seen" and not outcome.packets:
            problems.append("no packet was seen")
        if not bare and not row.get("reveals") and self._secret(row) and sweep.holds(
                outcome.out + b"\0" + outcome.err, place.shapes):
            problems.append("the canary is in the output")
        if problems:
            tail = text.strip()[-300:]
            problems.append(f"output: {tail!r}")
        return problems

    def _text(self, place, expect, text, outcome):
        problems = []
        for pattern in schema.listed(expect.get("out")):
            if not re.search(schema.expand(pattern, place.names, re.escape), text, re.M):
                problems.append(f"output lacks /{pattern}/")
        for pattern in schema.listed(expect.get("notout")):
            if re.search(schema.expand(pattern, place.names, re.escape), text, re.M):
                problems.append(f"output has /{pattern}/")
        for pattern in schema.listed(expect.get("message")):
            if not re.search(schema.expand(pattern, place.names, re.escape),
                             outcome.err.decode("utf-8", "replace"), re.M):
                problems.append(f"stderr lacks /{pattern}/")
        if "stdout" in expect:
            want = schema.expand(expect["stdout"], place.names).encode()
            if outcome.out != want:
                problems.append(f"stdout is {outcome.out[:200]!r}, expected {want[:200]!r}")
        if "bytes" in expect:
            low, high = (schema.listed(expect["bytes"]) * 2)[:2]
            if not low <= outcome.bytes <= high:
                problems.append(f"{outcome.bytes} bytes on stdout, expected {low} to {high}")
        return problems

    def _times(self, expect, outcome, whole):
        """What another sandbox takes to begin is its own time, but where a row is about that."""
        problems = []
        took = outcome.eof_s - (0 if whole else outcome.began or 0)
        if "maxs" in expect and took > expect["maxs"] * max(self.slack, _slack()):
            problems.append(f"output ended after {took:.2f} s, limit {expect['maxs']} s")
        if "mins" in expect and outcome.exit_s < expect["mins"]:
            problems.append(f"ended after {outcome.exit_s:.2f} s, before {expect['mins']} s")
        return problems

    def _outside(self, place, expect):
        problems = []
        if "noproc" in expect:
            argv = schema.expand(expect["noproc"], place.names)
            until = time.monotonic() + LEFT_WITHIN * self.slack
            while sweep.argv_pids(argv) and time.monotonic() < until:
                time.sleep(0.02)
            for pid in sweep.argv_pids(argv):
                problems.append(f"process {argv!r} is still there")
                _signal(pid, signal.SIGKILL)
        if "host" in expect:
            status, said = place.shell(expect["host"], own=True)
            if status:
                problems.append(f"outside: status {status}: {said.strip()[-200:]}")
        return problems

    # -- what is left

    def _children(self):
        heirs = (os.getpid(), 1) if self.settings.runner else (os.getpid(),)
        return [pid for pid, parent in sweep.parents().items()
                if parent in heirs and pid != os.getpid() and pid not in world.HELPERS]

    def _left(self):
        """Whatever outlives its sandbox comes to this process, a subreaper."""
        until = time.monotonic() + LEFT_WITHIN * self.slack
        while True:
            _reap()
            left = self._children()
            if not left or time.monotonic() > until:
                break
            time.sleep(0.01)
        problems = [f"left behind: {_cmdline(pid)}" for pid in left]
        self._clear()
        return problems

    def _clear(self):
        for pid in self._children():
            for child in sweep.below(pid):
                _signal(child, signal.SIGKILL)
            _signal(pid, signal.SIGKILL)
        time.sleep(0.005)
        _reap()


def _slack():
    """How much slower than usual this machine is just now: times in rows are multiples of it."""
    start = time.monotonic()
    for _ in range(3):
        subprocess.run(["/bin/true"], stdin=subprocess.DEVNULL, check=False)
    return max(1.0, (time.monotonic() - start) / 3 / SPAWN)


def _duration(value):
    return value if isinstance(value, str) else f"{value}s"


def _group(process, number):
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        pass


def _together(runs):
    threads = [threading.Thread(target=run.go) for run in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [run.outcome for run in runs]


def _program(name):
    return any(os.access(f"{folder}/{name}", os.X_OK) for folder in world.PATH.split(":"))


def _words(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as handle:
            return handle.read()
    except OSError:
        return None


def _comm(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as handle:
            return handle.read().strip()
    except OSError:
        return ""


def _cmdline(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as handle:
            text = handle.read().replace(b"\0", b" ").decode("utf-8", "replace").strip()
    except OSError:
        return ""
    return text[:200] or f"[{_comm(pid)}]"


def _reap():
    """Zombies that came to us; the helpers are waited for by those who started them."""
    for pid, parent in sweep.parents().items():
        if parent == os.getpid() and pid not in world.HELPERS:
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                continue


def _document(outcome):
    try:
        return json.loads(outcome.out.decode("utf-8"))
    except ValueError as error:
        outcome.problems.append(f"stdout is not one JSON document: {error}")
        return None


def _status(want, rc):
    if want == "nonzero":
        return rc != 0
    return rc in schema.listed(want)


def _result(document, path, want, names):
    value = document
    for part in path.split("."):
        if isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        elif isinstance(value, dict) and part in value:
            value = value[part]
        else:
            return [f"result has no {path}"]
    if isinstance(want, dict):
        if "re" in want:
            pattern = schema.expand(want["re"], names, re.escape)
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            good = re.search(pattern, text, re.M | re.S) is not None
        else:
            good = want.get("ge", value) <= value <= want.get("le", value)
    else:
        good = value == (schema.expand(want, names) if isinstance(want, str) else want)
    return [] if good else [f"result {path} is {value!r}, expected {want!r}"]
