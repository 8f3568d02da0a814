"""Attempts to leave the fence. Each is repeated without the fence, where it must succeed."""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from peripety.errors import FailedPreconditionError
from peripety.testgen.subjects.command import fence, sandbox
from peripety.testgen.subjects.command.sandbox import Sandbox
from support.servers.processes import descendants

if TYPE_CHECKING:
    from collections.abc import Iterator


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the fence needs Linux")

HEAD = """
import ctypes, os, signal, socket, sys, time
outside, process, port, abstract = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
libc = ctypes.CDLL(None, use_errno=True)
secret = os.path.join(outside, "secret")
def checked(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), "failed")
    return result
"""

ATTEMPTS = {
    "read_file": "assert open(secret).read() == 'canary'",
    "read_by_relative_path": "open('../' * 40 + secret).read()",
    "read_users": "open('/etc/passwd').read()",
    "list_home": "os.listdir(os.path.join(outside, 'home'))",
    "write_file": "open(os.path.join(outside, 'new'), 'w').close()",
    "append_to_file": "open(secret, 'a').close()",
    "truncate_file": "os.truncate(secret, 0)",
    "delete_file": "os.remove(os.path.join(outside, 'old'))",
    "make_directory": "os.mkdir(os.path.join(outside, 'folder'))",
    "move_out": "open('own', 'w').close(); os.rename('own', os.path.join(outside, 'own'))",
    "change_mode": "os.chmod(secret, 0o600)",
    "read_by_link": "os.symlink(secret, 'link'); open('link').read()",
    "write_by_link": "os.symlink(os.path.join(outside, 'target'), 'link'); open('link', 'w').close()",
    "read_by_hard_link": "os.link(secret, 'link'); open('link').read()",
    "read_environment_of_process": "assert 'canary' in open(f'/proc/{process}/environ').read()",
    "read_by_root_of_process": "open(f'/proc/{process}/root{secret}').read()",
    "list_files_of_process": "assert os.readlink(f'/proc/{process}/fd/0')",
    "read_memory_of_process": "open(f'/proc/{process}/mem', 'rb').close()",
    "trace_process": "checked(libc.ptrace(16, process, None, None)); libc.ptrace(17, process, None, None)",
    "signal_process": "os.kill(process, 0)",
    "signal_group": "os.killpg(os.getpgid(process), 0)",
    "connect": "socket.create_connection(('127.0.0.1', port), 5)",
    "send_datagram": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', port))",
    "connect_to_unix_socket": "socket.socket(socket.AF_UNIX).connect(os.path.join(outside, 'stream'))",
    "connect_to_abstract_socket": "socket.socket(socket.AF_UNIX).connect('\\0' + abstract)",
    "send_by_pair": """
        pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        pair[0].sendto(b"x", os.path.join(outside, "datagrams"))
    """,
    "gain_rights": "checked(libc.unshare(0x10000000))",
    "fork_many": """
        inner, outer = os.pipe()
        for _ in range(400):
            if not os.fork():
                os.close(outer)
                os.read(inner, 1)
                os._exit(0)
    """,
    "make_many_files": """
        for number in range(6_000):
            open(str(number), "w").close()
        time.sleep(1)
    """,
    "fill_disk": """
        for number in range(8):
            with open(str(number), "wb") as file:
                file.write(bytes(16 * 1024 * 1024))
        time.sleep(1)
    """,
    "leave_time_bomb": """
        if os.fork():
            os._exit(0)
        os.setsid()
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        if os.fork():
            os._exit(0)
        time.sleep(1)
    """,
    "outlast_limit": """
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        time.sleep(SECONDS + 1)
    """,
}

VICTIM = """
import ctypes, sys
ctypes.CDLL(None).prctl(0x59616d61, ctypes.c_ulong(-1), 0, 0, 0)  # anyone may trace it
print(flush=True)
sys.stdin.read()
"""

ORDINARY_USER = 65534
USERS = ["root", "ordinary"] if os.getuid() == 0 else ["ordinary"]


def readable_python() -> str:
    """Return an interpreter that every user can run; the own one may be in the home directory of root."""
    found = shutil.which("python3", path="/usr/bin:/usr/local/bin")
    return found or sys.executable


PYTHON = readable_python()


@dataclass
class Outside:
    """Files, sockets and a process outside of the fence."""

    user: int | None
    place: Path
    arguments: list[str]

    def start(self, argv: list[str], **options: Any) -> subprocess.Popen[str]:
        groups: Any = {} if self.user is None else {"user": self.user, "group": self.user, "extra_groups": []}
        return subprocess.Popen(
            argv, text=True, stdout=subprocess.PIPE, stdin=subprocess.PIPE, **groups, **options
        )

    def program(self, attempt: str, seconds: float) -> list[str]:
        lines = textwrap.dedent(ATTEMPTS[attempt]).replace("SECONDS", str(seconds))
        return [PYTHON, "-I", "-S", "-c", f"{HEAD}{lines}\nprint('escaped')", *self.arguments]

    def run_free(self, attempt: str) -> str:
        """Return the output without a fence."""
        with tempfile.TemporaryDirectory() as own:
            Path(own).chmod(0o777)
            return self.start(self.program(attempt, 0.5), cwd=own, stderr=subprocess.PIPE).communicate()[0]

    def run_fenced(self, attempt: str, level: str, seconds: float = 30.0) -> Any:
        """Return the output behind a fence, and its report."""
        argv = self.program(attempt, seconds)
        return self.run_rules(argv, level, seconds)

    def run_rules(self, argv: list[str], level: str, seconds: float = 30.0, **more: Any) -> Any:
        with tempfile.TemporaryDirectory() as outer, tempfile.TemporaryFile() as report:
            place = Path(outer, "place")
            place.mkdir()
            for one in (Path(outer), place):
                one.chmod(0o777)
            readable = [*sandbox._SYSTEM_PATHS, *sandbox._named_paths([PYTHON], {})]
            rules: dict[str, Any] = {
                "level": level,
                "is_serving": False,
                "place": str(place),
                "source": None,
                "files": {},
                "readable": [path for path in readable if Path(path).exists()],
                "read_back": [],
                "seconds": seconds,
                "memory_bytes": 1 << 30,
                "report": report.fileno(),
                **more,
            }
            starter = [PYTHON, "-I", "-S", fence.__file__, json.dumps(rules), *argv]
            process = self.start(starter, cwd="/", pass_fds=[report.fileno()], stderr=subprocess.PIPE)
            output, complaints = process.communicate()
            told = json.loads(report.read() or b"{}")
            assert "status" in told, (told, complaints)
            return output, told


@pytest.fixture(scope="module", params=USERS)
def outside(request: pytest.FixtureRequest) -> Iterator[Outside]:
    user = ORDINARY_USER if request.param == "ordinary" and os.getuid() == 0 else None
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (place / "home").mkdir()
        for name in ("secret", "old"):
            (place / name).write_text("canary")
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        port = listener.getsockname()[1]
        datagrams = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        datagrams.bind(("127.0.0.1", port))
        for kind, name in (
            (socket.SOCK_STREAM, str(place / "stream")),
            (socket.SOCK_DGRAM, str(place / "datagrams")),
            (socket.SOCK_STREAM, f"\0{place.name}"),
        ):
            one = stack.enter_context(socket.socket(socket.AF_UNIX, kind))
            one.bind(name)
            if kind == socket.SOCK_STREAM:
                one.listen(100)
        for path in (place, *place.iterdir()):
            path.chmod(0o777)
            if user is not None:
                os.chown(path, user, user)
        reached = Outside(user, place, [])
        victim = stack.enter_context(
            reached.start([PYTHON, "-I", "-S", "-c", VICTIM], env={"SECRET": "canary"})
        )
        stack.callback(victim.kill)
        assert victim.stdout is not None
        victim.stdout.readline()
        reached.arguments = [str(place), str(victim.pid), str(port), place.name]
        yield reached


@cache
def find_refusal(user: int | None, level: str) -> str:
    """Return the reason why a level does not work on this machine; empty if it works."""
    try:
        Outside(user, Path(), []).run_rules([PYTHON, "-I", "-S", "-c", ""], level)
    except AssertionError as error:
        return str(error)
    return ""


def require_level(outside: Outside, level: str) -> None:
    if refusal := find_refusal(outside.user, level):
        assert "KeyError" not in refusal, "the rules of this test are not those of the fence"
        pytest.skip(f"this machine does not support it: {refusal}")


LEVELS = ["namespaces", "landlock"]


@pytest.mark.slow_after(8, reason="each case starts several processes")
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_no_attempt_leaves_the_fence(outside: Outside, attempt: str, level: str) -> None:
    require_level(outside, level)
    is_limited = attempt == "outlast_limit"
    output, report = outside.run_fenced(attempt, level, 0.5 if is_limited else 30.0)
    assert "escaped" not in output or report["status"] is None
    assert (outside.place / "secret").read_text() == "canary"
    assert not (outside.place / "target").exists()
    assert report["status"] != 0 or attempt == "leave_time_bomb"
    assert "escaped" in outside.run_free(attempt)
    restore(outside)


def restore(outside: Outside) -> None:
    for name in ("secret", "old"):
        (outside.place / name).write_text("canary")
        (outside.place / name).chmod(0o777)
        if outside.user is not None:
            os.chown(outside.place / name, outside.user, outside.user)
    for name in ("new", "own", "target"):
        (outside.place / name).unlink(missing_ok=True)
    if (outside.place / "folder").exists():
        (outside.place / "folder").rmdir()


ORDINARY_PROGRAM = """
import asyncio, multiprocessing, os, shutil, subprocess, sys, tempfile
os.makedirs("a/b")
with open("a/b/c", "w") as file:
    file.write("text")
with tempfile.NamedTemporaryFile("w") as file:
    file.write("temporary")
async def work():
    started = await asyncio.create_subprocess_exec(sys.executable, "-c", "print(5)", stdout=-1)
    return (await started.communicate())[0]
print(asyncio.run(work()).decode().strip(), open("given").read(), multiprocessing.Pipe()[0].closed)
process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
process.terminate()
print(process.wait())
"""


@pytest.mark.parametrize("level", LEVELS)
def test_an_ordinary_program_works_behind_the_fence(outside: Outside, level: str) -> None:
    require_level(outside, level)
    output, report = outside.run_rules(
        [PYTHON, "-c", ORDINARY_PROGRAM],
        level,
        files={"given": base64.b64encode(b"input").decode()},
        read_back=["a/b/c", "missing"],
    )
    assert output.split() == ["5", "input", "False", "-15"]
    assert report == {"status": 0, "files": {"a/b/c": base64.b64encode(b"text").decode(), "missing": None}}


def test_a_link_is_not_followed_to_read_a_file_back(outside: Outside) -> None:
    require_level(outside, "namespaces")
    program = f"import os; os.symlink({str(outside.place)!r}, 'a'); os.symlink('/etc/passwd', 'b')"
    _, report = outside.run_rules(
        [PYTHON, "-c", program], "namespaces", read_back=["a/secret", "b", "../place/work/b"]
    )
    assert set(report["files"].values()) == {None}


def test_a_machine_without_a_fence_refuses_until_the_user_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "find_fence", lambda: None)
    with pytest.raises(FailedPreconditionError, match="--unfenced") as caught:
        Sandbox(["true"], None, {}, 5.0, 1 << 29)
    assert caught.value.code == "SANDBOX_UNAVAILABLE"
    free = Sandbox(["true"], None, {}, 5.0, 1 << 29, unfenced=True)
    assert not free.is_fenced
    assert free.run(["sh", "-c", "ls /etc/passwd"]).stdout == b"/etc/passwd\n"


def test_a_level_that_isolates_nothing_does_not_pass_the_probe() -> None:
    assert not sandbox.works(sandbox.UNFENCED)


def test_a_named_path_is_readable_and_no_other(tmp_path: Path) -> None:
    if sandbox.find_fence() is None:
        pytest.skip("this machine does not support a fence")
    for name in ("named", "other"):
        (tmp_path / name).write_text(name)
        (tmp_path / name).chmod(0o644)
    box = Sandbox(["cat"], None, {}, 5.0, 1 << 29, readable=[tmp_path / "named"])
    assert box.run(["cat", str(tmp_path / "named")]).stdout == b"named"
    assert box.run(["cat", str(tmp_path / "other")]).exit_code == 1


@pytest.mark.slow(reason="waits for a program")
@pytest.mark.parametrize("depth", [0, 1])
def test_a_run_is_repeated_if_a_process_outside_ends_the_fence(tmp_path: Path, depth: int) -> None:
    if sandbox.find_fence() != "namespaces" and depth:
        pytest.skip("the program itself is the child of the fence")
    killed: list[int] = []

    def kill() -> None:
        while not killed:
            time.sleep(0.02)
            processes = [*descendants(os.getpid())]
            if len(processes) > depth + 1:
                os.kill(processes[depth], signal.SIGKILL)
                killed.append(processes[depth])

    box = Sandbox([sys.executable], tmp_path, {}, 20.0, 1 << 29)
    thread = threading.Thread(target=kill)
    thread.start()
    output = box.run([sys.executable, "-c", "import time; time.sleep(0.5); print('done')"])
    thread.join()
    assert (output.exit_code, output.stdout, len(killed)) == (0, b"done\n", 1)
