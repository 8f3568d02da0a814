"""Probe of a Python program, which runs inside the sandbox, in the interpreter of the program.

Usage: `python probe.py COMMAND DESCRIPTOR [ARGUMENT...]`. The file descriptor holds a JSON object, the job.
The results replace it, one JSON value per line.

- `files` finds the source files of the program and of the packages that it imports. It executes nothing.
- `lines` runs the program, and reports the executed lines of each file, with coverage.py.
- `call` runs statements in a module of the program, as an example of its documentation.
- `mutants` runs the program once for each mutant, in a process that is forked after imports that take long.

A file has a key: its path in the working directory, or its absolute path if it is elsewhere. The probe
runs in Python 3.10 and later, so it imports the standard library only, and coverage.py from a path.
"""

from __future__ import annotations

import ast
import atexit
import base64
import functools
import gc
import importlib
import importlib.machinery
import importlib.util
import json
import os
import re
import runpy
import shutil
import signal
import sys
import time
from contextlib import suppress
from types import ModuleType
from typing import Any

_MAX_FILES = 400
_MAX_BYTES = 4 * 1024 * 1024
_MAX_OUTPUT_BYTES = 1024 * 1024
_MIN_SECONDS = 1.0
_SLOWDOWN = 5
"""A mutant may take so many times as long as the program, and one second at least."""

START = os.path.realpath(os.getcwd())

if sys.path[:1] == [os.path.dirname(os.path.abspath(__file__))]:
    del sys.path[0]  # the program must not find this one


def main() -> None:
    """Run a command of the probe."""
    command, descriptor, *arguments = sys.argv[1:]
    with os.fdopen(int(descriptor), "r+b", closefd=False) as report:
        job = json.loads(report.read())
        report.seek(0)
        report.truncate()
    os.set_inheritable(int(descriptor), False)  # noqa: FBT003 - it takes no name
    if command == "files":
        if not job["is_isolated"]:
            program = os.path.realpath(job["program"])
            sys.path.insert(0, START if job["is_module"] else os.path.dirname(program))
        find = _find_functions if job["is_library"] else _find_files
        report_result(int(descriptor), find(job))
    elif command == "lines":
        _trace(int(descriptor), job, arguments)
    elif command == "call":
        os.close(int(descriptor))
        run_program(job, arguments)
    elif _run_mutants(int(descriptor), job):
        os.close(int(descriptor))
        _run_and_leave(job, arguments)


def report_result(descriptor: int, result: Any) -> None:
    """Write a result as a line of JSON."""
    os.write(descriptor, json.dumps(result).encode() + b"\n")


def run_program(job: Any, arguments: list[str]) -> None:
    """Run a program as the interpreter would: with its own arguments, path and main module.

    A job with a `call` runs these statements in a module of the program instead. To a service, a job with an
    `exchange` sends requests meanwhile.
    """
    name = job["program"]
    sys.argv[:] = [name, *arguments]
    if job.get("exchange"):
        load_script("_peripety_exchange", job["exchange"]["script"]).begin(job["exchange"])
    if job.get("call"):
        if not job["is_isolated"]:
            directory = os.getcwd() if job["is_module"] else os.path.dirname(os.path.realpath(name))
            sys.path.insert(0, directory)
        run_call(job["call"])
        return
    if job["is_module"]:
        if not job["is_isolated"]:
            sys.path.insert(0, os.getcwd())
        runpy.run_module(name, run_name="__main__", alter_sys=True)
        return
    path = os.path.abspath(name)
    if not job["is_isolated"]:
        sys.path.insert(0, os.path.dirname(os.path.realpath(path)))
    module = ModuleType("__main__")
    module.__file__ = name
    module.__builtins__ = __builtins__  # type: ignore[attr-defined]
    sys.modules["__main__"] = module
    loader = importlib.machinery.SourceFileLoader("__main__", path)
    exec(loader.get_code("__main__"), module.__dict__)  # type: ignore[arg-type] # noqa: S102 - its purpose


def load_script(name: str, path: str) -> Any:
    """Load a script under a name that no program uses."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None  # noqa: S101, PT018 - the file exists
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def run_call(call: Any) -> None:
    """Run statements in the namespace of a module, and print values and an exception as in a doctest.

    Args:
        call: `module`, its dotted name, and `code`, the statements.
    """
    top = call["module"].partition(".")[0]
    module = importlib.import_module(call["module"])
    namespace = {top: importlib.import_module(top), **vars(module), "__name__": call["module"]}
    try:
        for statement in ast.parse(call["code"]).body:
            exec(compile(ast.Interactive([statement]), "<call>", "single", dont_inherit=True), namespace)  # noqa: S102 - its purpose
    except Exception as error:  # noqa: BLE001 - exceptions are results
        # The module of an exception is left out: interpreters and documentation differ in it.
        text = f"{type(error).__name__}: {error}".removesuffix(": ")
        sys.stdout.write(f"{text}\n")
        raise SystemExit(1) from None


# files


def _find_files(job: Any) -> dict[str, Any]:
    """Return the files to measure, and the packages that are imported and not measured with their lines."""
    name = job["program"]
    files: list[list[str]] = []
    entry = ""
    if job["is_module"]:
        found = _package_files(name.partition(".")[0])
        waiting = [*found]
        entry = _module_file(name)
    else:
        entry = os.path.abspath(name)
        waiting = [(entry, os.path.basename(name) if os.path.isabs(name) else name)]
    seen, imported = {path for path, _ in waiting}, dict[str, bool]()
    size = 0
    while waiting and len(files) < _MAX_FILES and size < _MAX_BYTES:
        path, shown = waiting.pop(0)
        try:
            with open(path, "rb") as file:
                source = file.read()
            tree = ast.parse(source)
        except (OSError, SyntaxError, ValueError, RecursionError):
            if path == entry:
                files.append([_key(path), shown, _read(path)])
            continue
        size += len(source)
        files.append([_key(path), shown, base64.b64encode(source).decode()])
        is_entry = path == entry
        is_wrapper = is_entry and not _defines_anything(tree)
        for package in _imported_names(tree):
            found = _package_files(package)
            if not found or {one[0] for one in found} & seen:
                continue
            is_own = _is_own(found[0][0])
            if is_own or is_wrapper or _is_named(package, job["task"]):
                seen.update(one[0] for one in found)
                waiting += found
                imported[package] = True
            elif is_entry or _is_own(path):
                imported.setdefault(package, False)
    left = {name: _count_lines(name) for name, is_measured in imported.items() if not is_measured}
    return {"entry": _key(entry), "files": files, "unmeasured": left}


_MAX_IMPORTS = 8


def _find_functions(job: Any) -> dict[str, Any]:
    """Return the functions to call, and the files that define them, following imports by name.

    Without the name of a function, these are all public functions and classes of the module.
    """
    parsed = _parsed(job["program"])
    if parsed is None:
        return {}
    names = [job["function"]] if job["function"] else _public_names(parsed)
    functions: dict[tuple[str, str], None] = {}
    files: dict[str, _ParsedModule] = {} if job["function"] else {parsed.path: parsed}
    for name in names:
        found = _find_definition(job["program"], name)
        if found is not None and (job["function"] or _is_callable(found[0].tree, found[1])):
            defining, own_name = found
            functions[defining.module, own_name] = None
            files.setdefault(defining.path, defining)
    entries = [[_key(one.path), one.shown, base64.b64encode(one.source).decode()] for one in files.values()]
    return {"entry": entries[0][0] if entries else "", "files": entries, "functions": [*functions]}


class _ParsedModule:
    """A module with its source.

    Args:
        module: its dotted name.
        path: its file.
        source: the content of the file.
    """

    def __init__(self, module: str, path: str, source: bytes) -> None:
        self.module, self.path, self.source = module, path, source
        self.tree = ast.parse(source)
        is_package = os.path.basename(path) == "__init__.py"
        self.package = module if is_package else module.rpartition(".")[0]
        self.shown = module.replace(".", "/") + ("/__init__.py" if is_package else ".py")


@functools.cache
def _parsed(module: str) -> _ParsedModule | None:
    path = _source_of(module)
    try:
        with open(path, "rb") as file:
            return _ParsedModule(module, path, file.read())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None


def _find_definition(module: str, name: str) -> tuple[_ParsedModule, str] | None:
    """Return the module that defines a name, and the name there; None for an unknown one."""
    for _ in range(_MAX_IMPORTS):
        parsed = _parsed(module)
        if parsed is None:
            return None
        found = _imported_from(parsed.tree, parsed.package, name)
        if found is None:
            return (parsed, name) if _is_defined(parsed.tree, name) else None
        module, name = found
    return None


def _public_names(parsed: _ParsedModule) -> list[str]:
    """Return the public names: of `__all__`, or those that the module defines or imports from its package."""
    names: dict[str, None] = {}
    top = parsed.module.partition(".")[0]
    for node in parsed.tree.body:
        if isinstance(node, ast.Assign) and [ast.unparse(one) for one in node.targets] == ["__all__"]:
            with suppress(ValueError):
                return [str(one) for one in ast.literal_eval(node.value)]
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names[node.name] = None
        elif (
            isinstance(node, ast.ImportFrom)
            and parsed.module == parsed.package
            and (node.level or (node.module or "").partition(".")[0] == top)
        ):
            names.update((alias.asname or alias.name, None) for alias in node.names)
    return [name for name in names if not name.startswith("_")]


def _is_callable(tree: ast.Module, name: str) -> bool:
    """Return True for a function, and for a class that is not an exception."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return True
        if isinstance(node, ast.ClassDef) and node.name == name:
            return not any(
                ast.unparse(base).endswith(("Error", "Exception", "Warning")) for base in node.bases
            )
    return False


def _source_of(module: str) -> str:
    """Return the path of a module, without executing its package; empty for an unknown one."""
    top, *rest = module.split(".")
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError, AttributeError):
        return ""
    if spec is None:
        return ""
    if not rest:
        return spec.origin or ""
    for place in spec.submodule_search_locations or ():
        path = os.path.join(place, *rest)
        for candidate in (f"{path}.py", os.path.join(path, "__init__.py")):
            if os.path.isfile(candidate):
                return candidate
    return ""


def _is_defined(tree: ast.Module, name: str) -> bool:
    """Return True if a module defines a name at its top level."""
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if node.name == name:
                return True
        elif any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node)):
            return True
    return False


def _imported_from(tree: ast.Module, package: str, name: str) -> tuple[str, str] | None:
    """Return the module and the name that a name is imported from; None if it is not imported."""
    for node in tree.body:
        if not isinstance(node, ast.ImportFrom):
            continue
        for alias in node.names:
            if (alias.asname or alias.name) == name:
                outer = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
                return ".".join([*outer, *filter(None, [node.module])]), alias.name
    return None


def _read(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return base64.b64encode(file.read()).decode()
    except OSError:
        return ""


def _key(path: str) -> str:
    return _relative(os.path.realpath(path), START)


def _relative(path: str, directory: str) -> str:
    start = os.path.join(directory, "")
    return path.removeprefix(start)


def _is_own(path: str) -> bool:
    return not os.path.isabs(_key(path)) and "site-packages" not in path


def _module_file(name: str) -> str:
    for candidate in (f"{name}.__main__", name):
        try:
            package = candidate.rpartition(".")[0]
            if package:
                # Importing a package to find its modules would execute it.
                top, *rest = candidate.split(".")
                spec = importlib.util.find_spec(top)
                for place in (spec and spec.submodule_search_locations) or ():
                    path = os.path.join(place, *rest) + ".py"
                    if os.path.isfile(path):
                        return path
            else:
                spec = importlib.util.find_spec(candidate)
                if spec and spec.origin:
                    return spec.origin
        except (ImportError, ValueError, AttributeError):
            continue
    return ""


def _package_files(name: str) -> list[tuple[str, str]]:
    """Return the source files of a top-level module or package, with names; none of the standard library."""
    if name in sys.stdlib_module_names or name in sys.builtin_module_names:
        return []
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return []
    if spec is None:
        return []
    if spec.submodule_search_locations is None:
        return [(spec.origin, f"{name}.py")] if spec.origin and spec.origin.endswith(".py") else []
    found: list[tuple[str, str]] = []
    for place in spec.submodule_search_locations:
        for folder, inner, names in os.walk(place):
            inner[:] = sorted(one for one in inner if one not in {"tests", "test", "testing", "__pycache__"})
            for file in sorted(names):
                if file.endswith(".py") and len(found) < _MAX_FILES:
                    path = os.path.join(folder, file)
                    found.append((path, f"{name}/{os.path.relpath(path, place)}"))
    return found


def _imported_names(tree: ast.AST) -> list[str]:
    names: dict[str, None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update((alias.name.partition(".")[0], None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names[node.module.partition(".")[0]] = None
    return [*names]


def _defines_anything(tree: ast.Module) -> bool:
    return any(
        isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) for node in ast.walk(tree)
    )


def _is_named(package: str, task: str) -> bool:
    """Return True if a text names a package, by its own name or by the one of its distribution."""
    names = {package}
    try:
        metadata = importlib.import_module("importlib.metadata")
        names.update(metadata.packages_distributions().get(package, ()))
    except (ImportError, AttributeError):
        pass
    words = "|".join(re.escape(name).replace("_", "[-_]").replace(r"\-", "[-_]") for name in names)
    return re.search(rf"(?<![\w.])({words})(?![\w])", task, re.IGNORECASE) is not None


def _count_lines(package: str) -> int:
    count = 0
    for path, _ in _package_files(package):
        try:
            with open(path, "rb") as file:
                tree = ast.parse(file.read())
        except (OSError, SyntaxError, ValueError, RecursionError):
            continue
        count += len({node.lineno for node in ast.walk(tree) if isinstance(node, ast.stmt)})
    return count


# lines


def _trace(descriptor: int, job: Any, arguments: list[str]) -> None:
    sys.path.insert(0, job["coverage"])
    coverage = importlib.import_module("coverage")
    sys.path.remove(job["coverage"])
    places = {os.path.join(START, key): key for key in job["files"]}
    tracer = coverage.Coverage(data_file=None, config_file=False, include=[*places], messages=False)

    def finish() -> None:
        tracer.stop()
        data = tracer.get_data()
        lines = {
            places[path]: sorted(data.lines(path) or ()) for path in data.measured_files() if path in places
        }
        report_result(descriptor, {"lines": lines, "modules": _loaded_modules(places)})

    atexit.register(finish)
    tracer.start()
    run_program(job, arguments)


def _loaded_modules(measured: Any) -> list[str]:
    """Return the names of the imported modules that are not measured, in the order of their import."""
    names = []
    for name, module in [*sys.modules.items()]:
        path = getattr(getattr(module, "__spec__", None), "origin", None)
        if name.partition(".")[0] in {"__main__", "coverage"} or not isinstance(path, str):
            continue
        if os.path.realpath(path) not in measured and os.path.isabs(_key(path)):
            names.append(name)
    return names


# mutants


def _run_mutants(descriptor: int, job: Any) -> bool:
    """Run the program and its mutants; return True in a process that has to run the program."""
    stdin = sys.stdin.buffer.read()
    _import_modules(job["modules"], {*job["files"]})
    original = os.path.join(START, "0")
    entries = os.listdir(START)
    os.mkdir(original)
    for entry in entries:
        os.rename(os.path.join(START, entry), os.path.join(original, entry))
    codes = _compile_files(original, job["files"])
    seconds = float(job["seconds"])
    gc.freeze()  # a collection in a child would copy the memory of all these objects
    for number, mutant in enumerate([None, *job["mutants"]], start=1):
        place = os.path.join(START, str(number))
        os.mkdir(place)
        work = os.path.join(place, "work")
        shutil.copytree(original, work, symlinks=True)
        out, err = os.path.join(place, "out"), os.path.join(place, "err")
        began = time.monotonic()
        child = os.fork()
        if not child:
            become(work, out, stdin, err)
            _replace_code(work, mutant, codes)
            return True
        status = wait_for(child, seconds)
        taken = time.monotonic() - began
        written = {"stdout": _encode_file(out), "stderr": _encode_file(err, work)}
        files = {name: _encode_file(os.path.join(work, name)) for name in job["read_back"]}
        report_result(descriptor, {"exit_code": status, **written, "files": files})
        if mutant is None:
            seconds = min(seconds, max(_MIN_SECONDS, _SLOWDOWN * taken))
        shutil.rmtree(place, ignore_errors=True)
    return False


def _encode_file(path: str, directory: str = "") -> str | None:
    """Return the beginning of a file in base64, with `.` for a directory; None for a missing file."""
    try:
        with open(path, "rb") as file:
            written = file.read(_MAX_OUTPUT_BYTES)
    except OSError:
        return None
    if directory:
        written = written.replace(os.fsencode(directory), b".")
    return base64.b64encode(written).decode()


def _run_and_leave(job: Any, arguments: list[str]) -> None:
    """Run a program in a forked process, and end without freeing each object, which takes longer."""
    code: Any = 1
    try:
        run_program(job, arguments)
        code = 0
    except SystemExit as end:
        code = end.code
    except BaseException:  # noqa: BLE001, S110 - the interpreter would end with this code, too
        pass
    with suppress(BaseException):
        if "threading" in sys.modules:
            sys.modules["threading"]._shutdown()  # noqa: SLF001 - as the interpreter does at its end
        atexit._run_exitfuncs()  # noqa: SLF001 - likewise
        sys.stdout.flush()
    os._exit((code or 0) & 0xFF if code is None or isinstance(code, int) else 1)


def become(work: str, out: str, stdin: bytes, err: str = os.devnull) -> None:
    """Make a forked process the one of a program: its directory, its input and its outputs."""
    os.setsid()
    os.chdir(work)
    given = os.path.join(os.path.dirname(work), "in")
    with open(given, "wb") as file:
        file.write(stdin)
    for name, mode, descriptor in (
        (given, os.O_RDONLY, 0),
        (out, os.O_WRONLY | os.O_CREAT, 1),
        (err, os.O_WRONLY | os.O_CREAT, 2),
    ):
        opened = os.open(name, mode, 0o600)
        os.dup2(opened, descriptor)
        os.close(opened)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - the input of the program


def wait_for(child: int, seconds: float) -> int | None:
    """Wait for a process; end it with its children after the time limit. Return its exit code."""
    until = time.monotonic() + seconds
    status = None
    while status is None and time.monotonic() < until:
        done, code = os.waitpid(child, os.WNOHANG)
        if done:
            status = os.waitstatus_to_exitcode(code)
        else:
            time.sleep(0.001)
    with suppress(OSError):
        os.killpg(child, signal.SIGKILL)
    if status is None:
        os.waitpid(child, 0)
    return status


def _import_modules(names: Any, measured: Any) -> None:
    """Import modules that take long, except those that import a measured file, which a mutant changes."""
    get_code = importlib.machinery.SourceFileLoader.get_code

    def checked(self: Any, fullname: str) -> Any:
        if _key(self.path) in measured:
            raise ImportError(fullname)
        return get_code(self, fullname)

    importlib.machinery.SourceFileLoader.get_code = checked  # type: ignore[method-assign]
    for name in names:
        try:
            importlib.import_module(name)
        except BaseException:  # noqa: BLE001, S112 - the program imports it again, and may do without it
            continue
    importlib.machinery.SourceFileLoader.get_code = get_code  # type: ignore[method-assign]


def _compile_files(directory: str, keys: Any) -> dict[str, Any]:
    """Return the code of the measured files, which is then compiled once for all mutants."""
    codes = {}
    for key in keys:
        path = os.path.join(directory, key)
        try:
            with open(path, "rb") as file:
                codes[key] = compile(file.read(), path, "exec", dont_inherit=True)
        except (OSError, SyntaxError, ValueError, RecursionError):
            continue
    return codes


def _replace_code(work: str, mutant: Any, codes: dict[str, Any]) -> None:
    """Let imports find the source of a mutant in place of the file."""
    changed, source = mutant or ("", "")
    get_code = importlib.machinery.SourceFileLoader.get_code

    def replaced(self: Any, fullname: str) -> Any:
        key = _relative(os.path.realpath(self.path), work)
        if key == changed:
            return compile(source, self.path, "exec", dont_inherit=True)
        return codes.get(key) or get_code(self, fullname)

    importlib.machinery.SourceFileLoader.get_code = replaced  # type: ignore[method-assign]


if __name__ == "__main__":
    main()
