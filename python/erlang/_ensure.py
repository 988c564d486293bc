"""Makes and fills a virtual environment: ``python -I -S _ensure.py``, for `py_venv`.

A program of its own, which holds the lock of the environment while it works, so nodes that want
the same one wait for each other. The first line of its standard input is the plan. Its end means
that the node or its caller is gone, or that time is up: then everything that was started here is
ended, with all descendants, before the lock is free.

Exit status: 0 done, 3 refused or failed (what is printed after a NUL says why), 4 a program did not
end in time.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import glob
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from typing import Any, NoReturn

STAMP = ".erlang_python"
#: Is there while somebody works, and stays when that is interrupted: "create" or "fill".
BEGUN = ".erlang_python-begun"
#: What a creation that was interrupted leaves. Nothing else of the directory is ever deleted.
MADE = ("bin", "include", "lib64", "lib", "pyvenv.cfg")
MOST_OUTPUT = 65536
LAST_WORDS = 2000
_PR_SET_CHILD_SUBREAPER = 36

_ending = threading.RLock()


class Refused(Exception):
    """A sentence for the user."""


def finish(status: int, words: str = "") -> NoReturn:
    with _ending:
        end_descendants()
        if words:
            sys.stdout.buffer.write(b"\0" + words.encode("utf-8", "backslashreplace"))
            sys.stdout.buffer.flush()
        os._exit(status)


def adopt() -> None:
    """Descendants whose parent ends become children of this process, so none is lost."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def descendants() -> list[int]:
    parents: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as stat:
                parents[int(name)] = int(stat.read().rpartition(b")")[2].split()[1])
    found = {os.getpid()}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return sorted(found - {os.getpid()})


def end_descendants() -> None:
    while pids := descendants():
        for pid in pids:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.005)


def watch() -> None:
    """Returns never: ends all when the one who has started this is gone."""
    while os.read(0, 4096):
        pass
    finish(1)


class Plan:
    def __init__(self, given: dict[str, Any]) -> None:
        self.venv: str = given["venv"]
        self.python: str = given["python"]
        self.installer: str = given["installer"]
        self.kind: str = given["kind"]
        self.file: str = given["file"]
        self.specs: list[str] = given["specs"]
        self.extra: list[str] = given["extra"]
        self.stamp: str = given["stamp"]
        self.seconds: float | None = given["seconds"]
        self.lock = -1

    def path(self, *names: str) -> str:
        return os.path.join(self.venv, *names)

    @property
    def exe(self) -> str:
        return self.path("bin", "python")

    def run(self, command: list[str], **variables: str) -> None:
        """Runs a program to its end, with the lock in its hands too: it may outlive this one."""
        try:
            with _ending:
                program = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    pass_fds=(self.lock,),
                    env={**os.environ, **variables},
                )
        except OSError as error:
            raise Refused(f"{command[0]} cannot be run: {error.strerror}") from None
        assert program.stdout is not None
        output = self.listen(program, program.stdout.fileno())
        with _ending:
            # Whoever ends all of this keeps the lock: what was killed has not failed.
            pass
        if program.returncode:
            words = output.decode("utf-8", "replace").strip()[-LAST_WORDS:]
            shown = " ".join(command)
            raise Refused(
                without_password(f"{shown} ended with status {program.returncode}:\n{words}")
            )

    def listen(self, program: subprocess.Popen[bytes], pipe: int) -> bytes:
        deadline = None if self.seconds is None else time.monotonic() + self.seconds
        output = b""
        while True:
            left = 0.2 if deadline is None else min(0.2, deadline - time.monotonic())
            if left <= 0:
                finish(4)
            if select.select([pipe], [], [], left)[0]:
                piece = os.read(pipe, MOST_OUTPUT)
                output = (output + piece)[-MOST_OUTPUT:]
                if piece:
                    continue
                # What it has started may have closed the pipe before it ends.
                with contextlib.suppress(subprocess.TimeoutExpired):
                    program.wait(left)
                    return output
            elif program.poll() is not None:
                # What it has left behind holds the pipe.
                return output


def without_password(text: str) -> str:
    """Of `https://name:password@host` the part before the host is left out, as pip does."""
    return re.sub(r"://[^/\s]*@", "://****@", text)


def take_lock(plan: Plan) -> None:
    folder, name = os.path.split(plan.venv)
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f".{name}.lock")
    plan.lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    deadline = None if plan.seconds is None else time.monotonic() + plan.seconds
    while True:
        try:
            fcntl.flock(plan.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if deadline is not None and time.monotonic() > deadline:
                finish(4)
            time.sleep(0.05)


def read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return None


def write(path: str, text: str) -> None:
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(path + ".new", path)


def delete(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)


def ensure(plan: Plan) -> None:
    take_lock(plan)
    if read(plan.path(STAMP)) == plan.stamp and os.path.exists(plan.exe):
        return
    begun = read(plan.path(BEGUN))
    if begun == "create":
        # What was interrupted half way may hold half a package, which an installer takes for whole.
        for name in MADE:
            delete(plan.path(name))
    is_venv = os.path.isfile(plan.path("pyvenv.cfg"))
    is_ours = is_venv or begun == "create"
    if not is_ours and os.path.isdir(plan.venv) and os.listdir(plan.venv):
        raise Refused(f"{plan.venv} exists and is not a virtual environment (it has no pyvenv.cfg)")
    whole = is_venv and os.path.isfile(plan.exe)
    os.makedirs(plan.venv, exist_ok=True)
    # One that another has made is mended at most: it may be years old.
    write(plan.path(BEGUN), "fill" if is_venv else "create")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(plan.path(STAMP))
    if not whole or needs_pip(plan):
        without = ["--without-pip"] if plan.installer else []
        plan.run([plan.python, "-m", "venv", *without, "--", plan.venv])
    try:
        fill(plan, again=begun == "fill")
    except Refused:
        # It has ended by itself, and an installer undoes what it has not finished.
        os.unlink(plan.path(BEGUN))
        raise
    write(plan.path(STAMP), plan.stamp)
    os.unlink(plan.path(BEGUN))


def needs_pip(plan: Plan) -> bool:
    """One that uv or `--without-pip` has made gets its pip only when pip is to be used."""
    found = glob.glob(os.path.join(glob.escape(plan.venv), "lib/python3*/site-packages/pip"))
    return not plan.installer and plan.kind != "none" and not found


def fill(plan: Plan, again: bool) -> None:
    if plan.kind == "none":
        return
    if plan.kind == "specs":
        install_specs(plan, plan.specs, again)
    elif plan.kind == "file":
        install_file(plan, plan.file, again)
    else:
        install_project(plan, again)


def install_specs(plan: Plan, specs: list[str], again: bool) -> None:
    # In a file none of them can be taken for an option of the installer.
    path = plan.path(STAMP + "-requirements.txt")
    write(path, "".join(spec + "\n" for spec in specs))
    try:
        install_file(plan, path, again)
    finally:
        os.unlink(path)


def install_file(plan: Plan, path: str, again: bool) -> None:
    if plan.installer:
        command = [plan.installer, "pip", "install", "--python", plan.exe]
        command += ["--reinstall"] * again
    else:
        command = [plan.exe, "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
        command += ["--force-reinstall"] * again
    plan.run([*command, *plan.extra, "-r", path])


def install_project(plan: Plan, again: bool) -> None:
    """What is locked, and nothing else; without a lock file the dependencies that it names."""
    folder = os.path.dirname(plan.file)
    locks = [name for name in ("uv.lock", "pylock.toml") if os.path.isfile(f"{folder}/{name}")]
    if locks and not plan.installer:
        raise Refused(f"{folder}/{locks[0]} is read by uv, and there is none: install uv")
    if not locks and not plan.installer:
        install_specs(plan, dependencies(plan.file), again)
    elif not locks:
        install_file(plan, plan.file, again)
    elif locks[0] == "uv.lock":
        command = [plan.installer, "sync", "--frozen", "--no-dev", "--project", folder]
        command += ["--python", plan.exe, *["--reinstall"] * again, *plan.extra]
        plan.run(command, UV_PROJECT_ENVIRONMENT=plan.venv, UV_PYTHON_DOWNLOADS="never")
    else:
        command = [plan.installer, "pip", "sync", "--python", plan.exe, *["--reinstall"] * again]
        plan.run([*command, *plan.extra, f"{folder}/pylock.toml"])


def dependencies(path: str) -> list[str]:
    import tomllib

    with open(path, "rb") as file:
        try:
            return [str(each) for each in tomllib.load(file)["project"].get("dependencies", [])]
        except (tomllib.TOMLDecodeError, KeyError, UnicodeDecodeError) as error:
            raise Refused(f"{path} cannot be read: {type(error).__name__}: {error}") from None


def first_line() -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        piece = os.read(0, 1)
        if not piece:
            os._exit(1)
        line += piece
    return line


def main() -> NoReturn:
    adopt()
    plan = Plan(json.loads(first_line()))
    threading.Thread(target=watch, daemon=True).start()
    try:
        ensure(plan)
    except Refused as refused:
        finish(3, str(refused))
    except OSError as error:
        finish(3, f"{error.filename or plan.venv}: {error.strerror}")
    finish(0)


if __name__ == "__main__":
    main()
