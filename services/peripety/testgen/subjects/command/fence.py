"""Fence around a program, started as a program itself: it restricts its own process, then runs the program.

Usage: `python -I -S fence.py RULES PROGRAM [ARGUMENT...]`. RULES is a JSON object; see `Rules`.

There are three levels:

- `namespaces`: own mounts, network and processes. The program sees the granted paths, read-only, and one
  writable file system of limited size. It runs as another user if the fence is started by root.
- `landlock`: the Landlock module restricts files, and a seccomp filter all sockets, for machines and
  containers without namespaces.
- `none`: limits of processes and time only.

At the first two levels, a seccomp filter also denies system calls that programs rarely need, and that could
weaken the fence. The fence enforces the time limit, and ends all processes that the program leaves behind.

This program imports only parts of the standard library that load fast, because it starts with each run.
"""

from __future__ import annotations

import base64
import ctypes
import json
import os
import platform
import resource
import signal
import struct
import sys
import time
from contextlib import suppress
from typing import Any, NoReturn, TypedDict

MAX_FILES = 4_000
"""Maximum number of files and directories that a program can have at one time."""

MAX_TOTAL_BYTES = 64 * 1024 * 1024
"""Maximum size of these files together."""

MAX_PROCESSES = 256
MAX_OPEN_FILES = 256
MAX_READ_BYTES = 1024 * 1024
"""Maximum size of a file that is read after the end of the program; a larger one is truncated."""


class Rules(TypedDict):
    """The restrictions of a program.

    Attributes:
        level: `namespaces`, `landlock` or `none`.
        place: an empty directory. The working directory `work` and the directory `tmp` are created in it.
        source: the directory whose content is copied to the working directory; None for an empty one.
        files: contents of more files, in base64, by path in the working directory.
        readable: paths that the program may read and execute.
        read_back: paths in the working directory of files to report.
        seconds: the time limit.
        memory_bytes: the memory limit of each process.
        is_serving: True if the program accepts connections of its own processes, at 127.0.0.1.
        report: the file descriptor that receives the report, a JSON object: `status` (exit code, or the
            negative number of a signal; None after the time limit, or with too many files), `files`
            (contents in base64, None for a missing file), or `error` (the fence failed), `not_started` (the
            program did not start) or `interrupted` (the negative number of a signal from outside).
    """

    level: str
    place: str
    source: str | None
    files: dict[str, str]
    readable: list[str]
    read_back: list[str]
    seconds: float
    memory_bytes: int
    is_serving: bool
    report: int


_libc = ctypes.CDLL(None, use_errno=True)
_IS_LINUX = sys.platform == "linux"
_WATCH_SECONDS = 0.05
_END_SECONDS = 10.0

# From <linux/sched.h>, <linux/mount.h>, <linux/prctl.h>, <linux/sockios.h> and <linux/if.h>.
_NEW_MOUNTS, _NEW_IPC, _NEW_USER, _NEW_PIDS, _NEW_NETWORK = (
    0x00020000,
    0x08000000,
    0x10000000,
    0x20000000,
    0x40000000,
)
_NEW_ANY = 0x7E020000
_NO_SUID, _NO_DEVICES, _NO_EXECUTION, _BIND, _RECURSIVE, _PRIVATE = 2, 4, 8, 4096, 16384, 1 << 18
_DETACH = 2
_MOUNT_READ_ONLY, _MOUNT_NO_SUID, _MOUNT_NO_DEVICES = 1, 2, 4
_SET_INTERFACE_FLAGS, _UP_AND_RUNNING = 0x8914, 0x41
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_SET_PARENT_DEATH_SIGNAL, _SET_DUMPABLE, _SET_SECCOMP, _SET_SUBREAPER, _SET_NO_NEW_PRIVILEGES = (
    1,
    4,
    22,
    36,
    38,
)

_CALLS = {
    # name: (x86-64, ARM64); None for calls that an architecture does not have
    "pivot_root": (155, 41),
    "mount_setattr": (442, 442),
    "landlock_create_ruleset": (444, 444),
    "landlock_add_rule": (445, 445),
    "landlock_restrict_self": (446, 446),
    "clone": (56, 220),
    "clone3": (435, 435),
    "socket": (41, 198),
    "socketpair": (53, 199),
}
_DENIED_CALLS = {
    "mounts": "165 40 166 39 155 41 161 51 428 428 429 429 430 430 431 431 432 432 433 433 442 442",
    "namespaces": "272 97 308 268",
    "processes": "101 117 310 270 311 271 312 272 438 438",
    "handles": "303 264 304 265",
    "keys": "248 217 249 218 250 219",
    "kernel": "321 280 298 241 323 282 175 105 176 106 313 273 246 104 320 294 169 142 167 224 168 225",
    "machine": "163 89 164 170 227 112 305 266 159 171 170 161 171 162 179 60 103 116",
    "uring": "425 425 426 426 427 427",
}
"""Pairs of call numbers, on x86-64 and ARM64, by subject."""

_DENIED_WITHOUT_NAMESPACES = {
    # Landlock does not restrict the attributes of files, or memory and queues that processes share.
    "attributes": "90 x 91 52 268 53 452 452 92 x 94 x 93 55 260 54 132 x 235 x 261 x 280 88"
    " 188 5 189 6 190 7 197 14 198 15 199 16",
    "shared": "29 194 64 190 68 186 240 180",
}
_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_COLUMN, _AUDIT_ARCHITECTURE = _ARCHITECTURES.get(platform.machine(), (0, 0))


class FenceError(Exception):
    """The fence cannot be set up."""


def main() -> None:
    """Run the program of the command line."""
    rules: Rules = json.loads(sys.argv[1])
    report: dict[str, Any] = {}
    try:
        report = _Fence(rules).run(sys.argv[2:])
    except (OSError, FenceError) as error:
        report = {"error": str(error)}
    os.pwrite(rules["report"], json.dumps(report).encode(), 0)


class _Fence:
    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._place = rules["place"]
        self._work = os.path.join(self._place, "work")
        self._has_namespaces = rules["level"] == "namespaces"
        self._user = _spare_user() if os.getuid() == 0 and rules["level"] != "none" else None
        os.set_inheritable(rules["report"], False)  # noqa: FBT003 - it takes no name
        os.umask(0o022)

    def run(self, argv: list[str]) -> dict[str, Any]:
        if self._has_namespaces:
            _enter_namespaces()
            if self._rules["is_serving"]:
                _enable_loopback()
        elif _IS_LINUX:
            _control(_SET_SUBREAPER, 1)
        if not self._has_namespaces:
            self._fill_place()
        child = os.fork()
        if not child:
            _exit_after(lambda: self._run_inside(argv) if self._has_namespaces else self._start(argv))
        status = self._wait(child)
        if self._has_namespaces:
            # The process inside has written the report.
            written = os.pread(self._rules["report"], 1 << 28, 0)
            os.ftruncate(self._rules["report"], 0)
            if status is None:
                return {"status": None}
            if not written and status < 0:
                # Signals of the program do not reach it, so another process or the system has ended it.
                return {"interrupted": status}
            return dict(json.loads(written or b'{"error": "it ended"}'))
        _end_descendants(child)
        return self._to_report(status if _is_small(self._place) else None)

    # outside of the program

    def _wait(self, child: int) -> int | None:
        """Wait for a child; return its exit code, or None after the time limit."""
        until = time.monotonic() + self._rules["seconds"]

        def check(_signal: int, _frame: Any) -> None:
            if time.monotonic() >= until or not (self._has_namespaces or _is_small(self._place)):
                raise TimeoutError
            signal.setitimer(signal.ITIMER_REAL, _WATCH_SECONDS)

        signal.signal(signal.SIGALRM, check)
        signal.setitimer(signal.ITIMER_REAL, _WATCH_SECONDS)
        try:
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        except TimeoutError:
            return None
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)

    def _to_report(self, status: int | None) -> dict[str, Any]:
        written = os.pread(self._rules["report"], 1 << 16, 0)
        if written:
            return dict(json.loads(written))
        files = {} if status is None else {name: self._read(name) for name in self._rules["read_back"]}
        return {"status": status, "files": files}

    def _read(self, name: str) -> str | None:
        """Return a file in base64; None for a missing one. Links of the program are not followed."""
        folder = os.open(self._work, os.O_RDONLY | os.O_DIRECTORY)
        try:
            *folders, last = name.split("/")
            for part in folders:
                inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
                os.close(folder)
                folder = inner
            opened = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
            with os.fdopen(opened, "rb") as file:
                return base64.b64encode(file.read(MAX_READ_BYTES)).decode()
        except OSError:
            return None
        finally:
            os.close(folder)

    def _fill_place(self, prefix: str = "") -> None:
        """Create the directories of the program."""
        work = prefix + self._work
        for folder in (work, os.path.join(prefix + self._place, "tmp")):
            os.mkdir(folder)
        if self._rules["source"] is not None:
            _copy_directory(self._rules["source"], work, self._rules["source"])
        for name, content in self._rules["files"].items():
            try:
                _write_file(work, name, base64.b64decode(content))
            except OSError as error:
                _report_end(self._rules["report"], "not_started", f"cannot write {name}: {error.strerror}")
        if self._user is not None:
            _give_to(self._user, prefix + self._place)

    # the first process of the namespaces

    def _run_inside(self, argv: list[str]) -> None:
        _control(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        _control(_SET_DUMPABLE, 0)  # or the program could reach the open files of this process
        self._enter_root()
        child = os.fork()
        if not child:
            _exit_after(lambda: self._start(argv))
        ended, status = 0, 0
        while ended != child:
            ended, status = os.wait()
        # The end of this process ends the others of its namespace.
        report = self._to_report(os.waitstatus_to_exitcode(status))
        os.pwrite(self._rules["report"], json.dumps(report).encode(), 0)

    def _enter_root(self) -> None:
        """Replace the root directory by one with the granted paths and the directories of the program."""
        root = self._place
        _mount("none", "/", "", _RECURSIVE | _PRIVATE)
        _mount("tmpfs", root, "tmpfs", _NO_SUID | _NO_DEVICES, "size=1m,mode=755")
        for path in _without_nested(self._rules["readable"]):
            _bind(path, root + path, _MOUNT_READ_ONLY | _MOUNT_NO_SUID | _MOUNT_NO_DEVICES)
        for name in ("null", "zero", "full", "random", "urandom"):
            _bind(f"/dev/{name}", f"{root}/dev/{name}", _MOUNT_NO_SUID)
        for name, target in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
            os.symlink(f"/proc/self/fd{target}", f"{root}/dev/{name}")
        os.symlink(os.path.join(self._place, "tmp"), f"{root}/dev/shm")  # noqa: S108 - inside of the new root
        os.mkdir(f"{root}/proc")
        with suppress(OSError):  # programs usually run without it
            _mount("proc", f"{root}/proc", "proc", _NO_SUID | _NO_DEVICES | _NO_EXECUTION)
            _set_attributes(f"{root}/proc", _MOUNT_READ_ONLY)
        os.makedirs(root + self._place, exist_ok=True)
        limits = f"size={MAX_TOTAL_BYTES},nr_inodes={MAX_FILES},mode=755"
        _mount("tmpfs", root + self._place, "tmpfs", _NO_SUID | _NO_DEVICES, limits)
        self._fill_place(root)
        _set_attributes(root, _MOUNT_READ_ONLY, is_recursive=False)
        os.chdir(root)
        _call("pivot_root", b".", b".")
        _check(_libc.umount2(b".", _DETACH), "umount")
        os.chdir("/")

    # the process of the program

    def _start(self, argv: list[str]) -> NoReturn:
        """Restrict this process, and become the program."""
        os.setsid()
        os.chdir(self._work)
        for name in ("TMPDIR", "HOME"):
            os.environ.setdefault(name, os.path.join(self._place, "tmp"))
        self._set_limits()
        if self._user is not None:
            os.setgroups([])
            os.setresgid(self._user, self._user, self._user)
            os.setresuid(self._user, self._user, self._user)
        if self._rules["level"] != "none":
            _control(_SET_NO_NEW_PRIVILEGES, 1)
            self._restrict_files()
            _filter_calls(has_namespaces=self._has_namespaces)
        try:
            os.execvp(argv[0], argv)  # noqa: S606 - its purpose
        except OSError as error:
            _report_end(self._rules["report"], "not_started", error.strerror or str(error))

    def _set_limits(self) -> None:
        seconds = int(self._rules["seconds"]) + 1
        processes = MAX_PROCESSES
        if not self._has_namespaces and self._user is None and _IS_LINUX:
            processes += _count_threads(os.getuid())  # the limit counts all processes of a user
        for kind, value in (
            (resource.RLIMIT_AS, self._rules["memory_bytes"]),
            (resource.RLIMIT_CPU, seconds),
            (resource.RLIMIT_FSIZE, MAX_TOTAL_BYTES),
            (resource.RLIMIT_NOFILE, MAX_OPEN_FILES),
            (resource.RLIMIT_NPROC, processes),
            (resource.RLIMIT_CORE, 0),
        ):
            most = resource.getrlimit(kind)[1]
            limit = value if most == resource.RLIM_INFINITY else min(value, most)
            try:
                resource.setrlimit(kind, (limit, limit))
            except (OSError, ValueError):
                if self._rules["level"] != "none":
                    raise

    def _restrict_files(self) -> None:
        version = _landlock_version()
        if version:
            readable = ["/"] if self._has_namespaces else self._rules["readable"]
            _restrict_files(version, readable, self._place)
        elif not self._has_namespaces:
            raise FenceError("Landlock is missing")


def _exit_after(act: Any) -> NoReturn:
    """Act in a forked process, and end it; an error is the report."""
    try:
        act()
    except (OSError, FenceError, ValueError) as error:
        rules: Rules = json.loads(sys.argv[1])
        _report_end(rules["report"], "error", str(error))
    finally:
        os._exit(0)


def _report_end(report: int, key: str, reason: str) -> NoReturn:
    os.pwrite(report, json.dumps({key: reason}).encode(), 0)
    os._exit(125)


# system calls


def _check(result: int, name: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def _call(name: str, *arguments: Any) -> int:
    return _check(_libc.syscall(_CALLS[name][_COLUMN], *arguments), name)


def _control(option: int, value: int) -> None:
    _check(_libc.prctl(option, value, 0, 0, 0), "prctl")


def _mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    told = (source.encode(), os.fsencode(target), kind.encode(), ctypes.c_ulong(flags), data.encode())
    _check(_libc.mount(*told), f"mount {kind}")


def _bind(source: str, target: str, attributes: int) -> None:
    """Mount a file or a directory at another path."""
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
    told = (os.fsencode(source), os.fsencode(target), None, ctypes.c_ulong(_BIND | _RECURSIVE), None)
    _check(_libc.mount(*told), f"mount {source}")
    _set_attributes(target, attributes)


def _set_attributes(target: str, attributes: int, *, is_recursive: bool = True) -> None:
    told = struct.pack("QQQQ", attributes, 0, 0, 0)
    flags = _AT_RECURSIVE if is_recursive else 0
    _call("mount_setattr", _AT_FDCWD, os.fsencode(target), flags, told, ctypes.c_size_t(len(told)))


def _enter_namespaces() -> None:
    """Enter namespaces of mounts, processes, network and shared memory, as root or with a user namespace."""
    if not _AUDIT_ARCHITECTURE:
        raise FenceError(f"not supported on {platform.machine()}")
    own = _NEW_MOUNTS | _NEW_PIDS | _NEW_NETWORK | _NEW_IPC
    user, group = os.getuid(), os.getgid()
    if user == 0:
        _check(_libc.unshare(own), "unshare")
        return
    _check(_libc.unshare(own | _NEW_USER), "unshare")
    for name, content in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(content)


def _enable_loopback() -> None:
    """Let processes of the own network reach each other at 127.0.0.1."""
    import fcntl  # noqa: PLC0415 - most runs need neither
    import socket  # noqa: PLC0415

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SET_INTERFACE_FLAGS, struct.pack("16sH22x", b"lo", _UP_AND_RUNNING))


def _spare_user() -> int:
    """Return the id of a user without other processes, for the limit of processes."""
    wanted = 2_000_000_000 + os.getpid()
    try:
        with open("/proc/self/uid_map") as file:
            ranges = [[int(number) for number in line.split()] for line in file]
    except OSError:
        return wanted
    is_mapped = any(first <= wanted < first + count for first, _, count in ranges)
    return wanted if is_mapped else 65534


def _landlock_version() -> int:
    """Return the version of Landlock; 0 without it."""
    if not _AUDIT_ARCHITECTURE or not _IS_LINUX:
        return 0
    return max(0, int(_libc.syscall(_CALLS["landlock_create_ruleset"][_COLUMN], None, ctypes.c_size_t(0), 1)))


# From <linux/landlock.h>.
_RIGHTS = 13
_RIGHTS_BY_VERSION = {2: 14, 3: 15, 5: 16}
_TO_READ = 0b1101  # execute, read files, read directories
_TO_READ_FILES = 0b101
_TO_WRITE_FILES = 0b110 | 1 << 14
_DEVICES = 1 << 6 | 1 << 11 | 1 << 15
_MIN_LANDLOCK, _NETWORK_LANDLOCK, _SCOPE_LANDLOCK = 3, 4, 6
_READ_ONLY_PATH = 0o10000000  # O_PATH


def _restrict_files(version: int, readable: list[str], place: str) -> None:
    """Let this process read some paths and change a place, and signal no process outside."""
    if version < _MIN_LANDLOCK:
        raise FenceError(f"Landlock is too old: version {version}")
    count = max(count for since, count in {1: _RIGHTS, **_RIGHTS_BY_VERSION}.items() if since <= version)
    every = (1 << count) - 1
    attributes = struct.pack("QQQ", every, 0, 0b11)
    size = 24 if version >= _SCOPE_LANDLOCK else 16 if version >= _NETWORK_LANDLOCK else 8
    rules = _call("landlock_create_ruleset", attributes, ctypes.c_size_t(size), 0)

    def allow(path: str, rights: int) -> None:
        opened = os.open(path, _READ_ONLY_PATH | os.O_CLOEXEC)
        rule = struct.pack("=Qi", rights & every, opened)
        _call("landlock_add_rule", rules, 1, rule, 0)
        os.close(opened)

    for path in readable:
        allow(path, _TO_READ if os.path.isdir(path) else _TO_READ_FILES)
    for name in ("null", "zero", "full", "random", "urandom"):
        allow(f"/dev/{name}", _TO_WRITE_FILES)
    allow(place, every & ~_DEVICES)
    _call("landlock_restrict_self", rules, 0)
    os.close(rules)


_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_ALLOW, _DENY = 0x7FFF0000, 0x00050000
_NOT_PERMITTED, _NOT_IMPLEMENTED, _NO_FAMILY = 1, 38, 97
_NUMBER, _ARCHITECTURE, _FIRST, _SECOND = 0, 4, 16, 24
_INTERNET_FAMILIES = (2, 10)
_STREAMS = (1, 5)


def _filter_calls(*, has_namespaces: bool) -> None:
    """Deny system calls of this process and its children, with a seccomp filter."""
    if not _AUDIT_ARCHITECTURE:
        raise FenceError(f"not supported on {platform.machine()}")
    code: list[tuple[int, int, int, int]] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, _AUDIT_ARCHITECTURE),
        (_RETURN, 0, 0, _DENY | _NOT_IMPLEMENTED),
        (_LOAD, 0, 0, _NUMBER),
    ]
    if not _COLUMN:  # the x32 interface of x86-64
        code += [(_AT_LEAST, 0, 1, 0x40000000), (_RETURN, 0, 0, _DENY | _NOT_IMPLEMENTED)]
    groups = [*_DENIED_CALLS.values(), *([] if has_namespaces else _DENIED_WITHOUT_NAMESPACES.values())]
    for group in groups:
        for number in group.split()[_COLUMN::2]:
            if number != "x":
                code += [(_EQUAL, 0, 1, int(number)), (_RETURN, 0, 0, _DENY | _NOT_PERMITTED)]
    # The library falls back to `clone`, whose arguments a filter can read.
    code += [(_EQUAL, 0, 1, _CALLS["clone3"][_COLUMN]), (_RETURN, 0, 0, _DENY | _NOT_IMPLEMENTED)]
    code += _unless("clone", _FIRST, [(_ANY_BIT, 0, 1, _NEW_ANY)], _NOT_PERMITTED, is_denied=True)
    families = _INTERNET_FAMILIES if has_namespaces else ()
    code += _unless("socket", _FIRST, [(_EQUAL, 0, 1, one) for one in families], _NO_FAMILY)
    # A pair of datagram sockets could send to any socket of the machine.
    kinds = [(_AND, 0, 0, 15), *((_EQUAL, 0, 1, one) for one in _STREAMS)]
    code += _unless("socketpair", _SECOND, kinds, _NO_FAMILY)
    code.append((_RETURN, 0, 0, _ALLOW))
    program = b"".join(struct.pack("HBBI", *one) for one in code)
    kept = ctypes.create_string_buffer(program)
    told = struct.pack("HxxxxxxQ", len(code), ctypes.addressof(kept))
    _check(_libc.prctl(_SET_SECCOMP, 2, told, 0, 0), "seccomp")


def _unless(
    name: str,
    argument: int,
    tests: list[tuple[int, int, int, int]],
    number: int,
    *,
    is_denied: bool = False,
) -> list[tuple[int, int, int, int]]:
    """Return code that denies a call unless a test of its argument succeeds, or the reverse."""
    good, other = (_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _DENY | number)
    if is_denied:
        good, other = other, good
    inner = [(_LOAD, 0, 0, argument)]
    for test in tests:
        inner += [test] if test[0] == _AND else [test, good]
    inner.append(other)
    return [(_EQUAL, 0, len(inner), _CALLS[name][_COLUMN]), *inner]


# files


def _without_nested(paths: list[str]) -> list[str]:
    """Return existing paths without those inside others."""
    chosen: list[str] = []
    for path in sorted({os.path.normpath(path) for path in paths if os.path.exists(path)}):
        if not any(path.startswith(os.path.join(outer, "")) for outer in chosen):
            chosen.append(path)
    return chosen


def _copy_directory(source: str, target: str, outer: str) -> None:
    """Copy a directory with its links; an absolute link into the directory leads into the copy."""
    for entry in os.scandir(source):
        path = os.path.join(target, entry.name)
        if entry.is_symlink():
            linked = os.readlink(entry.path)
            is_inside = linked.startswith(os.path.join(outer, ""))
            os.symlink(os.path.relpath(linked, os.path.dirname(entry.path)) if is_inside else linked, path)
        elif entry.is_dir():
            os.mkdir(path)
            _copy_directory(entry.path, path, outer)
        elif entry.is_file():
            with open(entry.path, "rb") as file, open(path, "xb") as copy:
                while block := file.read(1 << 20):
                    copy.write(block)
            os.chmod(path, entry.stat().st_mode & 0o777 | 0o600)


def _write_file(directory: str, name: str, content: bytes) -> None:
    """Write a file in a directory in place of an existing one. Links are not followed."""
    folder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        *folders, last = name.split("/")
        for part in folders:
            with suppress(FileExistsError):
                os.mkdir(part, dir_fd=folder)
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = inner
        with suppress(FileNotFoundError):
            os.unlink(last, dir_fd=folder)
        with os.fdopen(
            os.open(last, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644, dir_fd=folder), "wb"
        ) as file:
            file.write(content)
    finally:
        os.close(folder)


def _give_to(user: int, place: str) -> None:
    os.chown(place, user, user)
    for folder, inner, names in os.walk(place):
        for name in (*inner, *names):
            os.lchown(os.path.join(folder, name), user, user)


def _is_small(place: str) -> bool:
    """Return True if a directory is within the limits; files may disappear meanwhile."""
    count = size = 0
    for folder, inner, names in os.walk(place):
        count += len(inner) + len(names)
        for name in names:
            with suppress(OSError):
                size += os.lstat(os.path.join(folder, name)).st_size
        if count > MAX_FILES or size > MAX_TOTAL_BYTES:
            return False
    return True


# processes


def _read_processes() -> dict[int, tuple[int, int]]:
    """Return the parent and the user of each process."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError, IndexError, ValueError):
                with open(f"/proc/{name}/stat", "rb") as file:
                    parent = int(file.read().rpartition(b")")[2].split()[1])
                found[int(name)] = (parent, os.stat(f"/proc/{name}").st_uid)
    return found


def _count_threads(user: int) -> int:
    count = 0
    for process, (_, owner) in _read_processes().items():
        if owner == user:
            with suppress(OSError):
                count += len(os.listdir(f"/proc/{process}/task"))
    return count


def _end_descendants(child: int) -> None:
    """End the processes that a program leaves behind; each becomes a child of this process."""
    until = time.monotonic() + _END_SECONDS
    while time.monotonic() < until:
        if _IS_LINUX:
            parents = _read_processes()
            inside = {os.getpid()}
            while more := {one for one, (parent, _) in parents.items() if parent in inside} - inside:
                inside |= more
            found = inside - {os.getpid()}
        else:
            found = {-child}
        for process in found:
            with suppress(OSError):
                os.kill(process, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.001)


if __name__ == "__main__":
    main()
