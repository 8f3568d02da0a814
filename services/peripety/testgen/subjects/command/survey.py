"""Survey of a Python program, which runs inside the sandbox, in the interpreter of the program.

Usage: `python survey.py COMMAND DESCRIPTOR`. The file descriptor holds a JSON object, the job. The results
replace it, one JSON value per line.

- `interface` runs the program until it parses its arguments, and reports its parameters, as argparse, getopt
  and click define them, the values of its modules, and the modules that it imports.
- `calls` runs the program once for each call, in a forked process, and reports the output, the executed lines
  and the features of each call. A feature is a number for a fact about a run: how often a line was executed,
  which operand of a comparison was greater, to which kind a result belongs.

Features follow M. Zalewski's AFL (counts of executed blocks) and libFuzzer's value profile (comparisons).
"""

from __future__ import annotations

import ast
import base64
import gc
import importlib
import importlib.machinery
import importlib.util
import json
import linecache
import operator
import os
import re
import resource
import shutil
import signal
import sys
import time
import zlib
from contextlib import suppress
from typing import Any

_DIRECTORY = os.path.dirname(os.path.abspath(__file__))
if sys.path[:1] == [_DIRECTORY]:
    del sys.path[0]  # the program must not find this one


def _load_probe() -> Any:
    """Load the neighbour of this program under a name that no program uses."""
    spec = importlib.util.spec_from_file_location("_peripety_probe", os.path.join(_DIRECTORY, "probe.py"))
    assert spec is not None and spec.loader is not None  # noqa: S101, PT018 - the file exists
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


probe = _load_probe()

_MAX_CALL_SECONDS = 2
"""Limit of the processor time of a call, so that a busy machine gives the same results."""

_MAX_WAITING_SECONDS = 30.0
_MAX_OUTPUT_BYTES = 64 * 1024
_MAX_VALUES = 200
_MAX_DEPTH = 4
_MAX_TEXT = 400
_MAX_PATTERN = 2_000
_MAX_PATTERNS = 60
_MAX_COUNT = 48
"""Executions of a line are counted up to this number; beyond it, only their order of magnitude matters."""

_MAX_SHOWN = 16
_MAX_README = 100_000


def main() -> None:
    """Run a command of the survey."""
    command, descriptor = sys.argv[1], int(sys.argv[2])
    with os.fdopen(descriptor, "r+b", closefd=False) as report:
        job = json.loads(report.read())
        report.seek(0)
        report.truncate()
    os.set_inheritable(descriptor, False)  # noqa: FBT003 - it takes no name
    if command == "interface":
        _report_interface(descriptor, job)
    else:
        _run_calls(descriptor, job)


# interface


class _ParserFoundError(BaseException):
    """The program parses its arguments. Not an `Exception`, because programs catch these."""


def _report_interface(descriptor: int, job: Any) -> None:
    commands: list[Any] = []
    _watch_argparse(commands)
    _watch_getopt(commands)
    _watch_click(commands, job["files"])
    with suppress(BaseException):
        probe.run_program(job, [])
    files = {os.path.join(probe.START, key): key for key in job["files"]}
    values, names = [], []
    for name, module in [*sys.modules.items()]:
        path = getattr(module, "__file__", None)
        if name == "_peripety_probe" or (name == "__main__" and path == __file__):
            continue
        if name != "__main__":
            names.append(name)
        key = files.get(os.path.realpath(path)) if isinstance(path, str) else None
        if key is not None:
            values += [[key, *value] for value in _values_of(module)]
    sys.stdout.flush()
    readmes, calls = _read_documentation(job)
    result = {"commands": commands, "values": values, "modules": names, "readmes": readmes, "names": calls}
    probe.report_result(descriptor, result)


def _read_documentation(job: Any) -> tuple[list[Any], list[str]]:
    """Return the READMEs of the directory and of measured packages, and the names of the program."""
    program = os.path.basename(job["program"])
    names = {program, program.removesuffix(".py")}
    readmes = []
    for name in sorted(os.listdir(probe.START)):
        if name.lower().startswith("readme"):
            with suppress(OSError), open(os.path.join(probe.START, name), errors="replace") as file:
                readmes.append([program.removesuffix(".py"), file.read(_MAX_README)])
    with suppress(Exception):
        metadata = importlib.import_module("importlib.metadata")
        distributions = metadata.packages_distributions()
        files = [os.path.join(probe.START, key) for key in job["files"]]
        for package in sorted(distributions):
            spec = getattr(sys.modules.get(package), "__spec__", None)
            if spec is None or spec.origin is None or os.path.realpath(spec.origin) not in files:
                continue
            for found in distributions[package]:
                own = metadata.distribution(found)
                readmes.append([package, (own.metadata.get_payload() or "")[:_MAX_README]])
                names |= {one.name for one in own.entry_points if one.group == "console_scripts"}
    return readmes, sorted(names)


def _watch_argparse(commands: list[Any]) -> None:
    argparse = importlib.import_module("argparse")

    def found(self: Any, *_: Any, **__: Any) -> Any:
        if not commands:
            commands.extend(_argparse_commands(argparse, self, []))
        raise _ParserFoundError

    argparse.ArgumentParser.parse_known_args = found
    argparse.ArgumentParser.parse_known_intermixed_args = found


def _argparse_commands(argparse: Any, parser: Any, path: list[str]) -> list[Any]:
    own: list[Any] = []
    inner: list[Any] = []
    seen = set()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, other in action.choices.items():
                if id(other) not in seen:
                    seen.add(id(other))
                    inner += _argparse_commands(argparse, other, [*path, name])
            continue
        is_flag = action.nargs == 0
        own.append(
            {
                "flags": [*action.option_strings],
                "name": action.dest,
                "type": _type_name(action.type),
                "choices": [str(one) for one in action.choices or ()],
                "is_flag": is_flag,
                "is_required": bool(action.required) and action.nargs not in ("?", "*"),
                "count": action.nargs if isinstance(action.nargs, int) and action.nargs > 0 else 1,
                "is_many": action.nargs in ("*", "+"),
                "default": _to_text(action.default),
            }
        )
    return [{"path": path, "parameters": own, "is_group": bool(inner)}, *inner]


def _watch_getopt(commands: list[Any]) -> None:
    getopt: Any = importlib.import_module("getopt")

    def found(_: Any, short: str, long: Any = ()) -> Any:
        if not commands:
            # getopt also takes one name as a text.
            commands.append(_getopt_command(short, [long] if isinstance(long, str) else [*long]))
        raise _ParserFoundError

    getopt.getopt = getopt.gnu_getopt = found


def _getopt_command(short: str, long: list[str]) -> Any:
    """Return the command of a program that only defines options, and takes any number of arguments."""
    options = [(f"-{letter}", short[place + 1 : place + 2] == ":") for place, letter in enumerate(short)]
    options += [(f"--{name.rstrip('=')}", name.endswith("=")) for name in long]
    usual = {
        "type": "str",
        "choices": [],
        "is_required": False,
        "count": 1,
        "is_many": False,
        "default": "",
    }
    parameters = [
        {**usual, "flags": [flag], "name": flag.lstrip("-"), "is_flag": not has_value}
        for flag, has_value in options
        if flag.strip("-+:")
    ]
    rest = {**usual, "flags": [], "name": "", "is_flag": False, "is_many": True}
    return {"path": [], "parameters": [*parameters, rest], "is_group": False}


def _type_name(kind: Any) -> str:
    name = getattr(kind, "__name__", type(kind).__name__) if kind is not None else "str"
    return str(name)


def _to_text(value: Any) -> str:
    return str(value)[:_MAX_TEXT] if isinstance(value, (str, int, float)) else ""


def _watch_click(commands: list[Any], files: list[str]) -> None:
    """Watch click, and the copy of it in typer, if the sources name them and they are installed."""
    sources = [_read_source(os.path.join(probe.START, key)) for key in files]
    for name in ("click.core", "typer._click.core"):
        library = name.partition(".")[0].encode()
        if any(library in source for source in sources):
            with suppress(Exception):
                _watch_commands(importlib.import_module(name), commands)


def _read_source(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def _watch_commands(core: Any, commands: list[Any]) -> None:
    def found(self: Any, *_: Any, **__: Any) -> Any:
        if not commands:
            commands.extend(_click_commands(self, []))
        raise _ParserFoundError

    core.Command.make_context = found


def _click_commands(command: Any, path: list[str]) -> list[Any]:
    own = []
    for parameter in command.params:
        is_option = parameter.opts[0].startswith("-")
        own.append(
            {
                "flags": [*parameter.opts] if is_option else [],
                "name": parameter.name,
                "is_flag": bool(getattr(parameter, "is_flag", False) or getattr(parameter, "count", False)),
                "is_required": bool(parameter.required),
                "count": max(parameter.nargs, 1),
                "is_many": parameter.nargs == -1,
                "default": _to_text(getattr(parameter.default, "value", parameter.default)),
                **_click_type(parameter),
            }
        )
        if is_option and parameter.secondary_opts:
            # The second name of a switch, such as --no-color, is an option of its own.
            own.append({**own[-1], "flags": [*parameter.secondary_opts], "is_required": False})
    inner = []
    for name, other in getattr(command, "commands", {}).items():
        inner += _click_commands(other, [*path, name])
    return [{"path": path, "parameters": own, "is_group": bool(inner)}, *inner]


def _click_type(parameter: Any) -> dict[str, Any]:
    """Return the type of a parameter; newer versions of typer have an annotation in its place."""
    kind = getattr(parameter, "type", None)
    if kind is not None:
        limits, choices = kind, [*getattr(kind, "choices", ())]
        name = getattr(kind, "name", "str")
    else:
        annotation, limits = parameter.type_descriptor.annotation, parameter
        # The class in an optional type or a list; the values of a Literal are choices.
        parts = [one for one in getattr(annotation, "__args__", ()) if one is not type(None)]
        choices = [one for one in parts if not isinstance(one, type)]
        annotation = parts[0] if parts and not choices else annotation
        choices = choices or [*getattr(annotation, "__members__", {}).values()]
        name = getattr(annotation, "__name__", "str")
    return {
        "type": name,
        # The argument of a member of an enumeration is its value.
        "choices": [str(getattr(one, "value", one)) for one in choices],
        "limits": [_to_text(getattr(limits, "min", None)), _to_text(getattr(limits, "max", None))],
    }


def _values_of(module: Any) -> list[Any]:
    """Return the values of a module and of its classes: name, kind, value."""
    found: list[Any] = []
    for name, value in [*vars(module).items()]:
        if name.startswith("__"):
            continue
        if isinstance(value, type):
            if value.__module__ == module.__name__:
                for inner, part in [*vars(value).items()]:
                    if not inner.startswith("__"):
                        found += _flatten(inner, part, 1)
            continue
        found += _flatten(name, value, 0)
    return found


def _flatten(name: str, value: Any, depth: int) -> list[Any]:
    if isinstance(value, bool) or depth > _MAX_DEPTH:
        return []
    if isinstance(value, (int, float)):
        # The representation of a member of an enumeration has its name.
        shown = repr(int(value) if isinstance(value, int) else float(value))
        return [[name, "number", shown]] if len(shown) <= _MAX_TEXT else []
    if isinstance(value, str):
        return [[name, "text", value]] if 0 < len(value) <= _MAX_TEXT else []
    if isinstance(value, re.Pattern):
        return [[name, "pattern", _text_of_pattern(value)]]
    if isinstance(value, dict):
        parts = [part for pair in [*value.items()][:_MAX_VALUES] for part in pair]
    elif isinstance(value, (list, tuple)):
        parts = [*value[:_MAX_VALUES]]
    elif isinstance(value, (set, frozenset)):
        parts = sorted(value, key=repr)[:_MAX_VALUES]
    else:
        return []
    found = []
    for part in parts:
        found += _flatten(name, part, depth + 1)
    return found[:_MAX_VALUES]


def _text_of_pattern(compiled: Any) -> str:
    """Return the text of a regular expression with its flags; one for bytes as text of these numbers."""
    pattern, flags = compiled.pattern, compiled.flags
    pattern = pattern.decode("latin-1") if isinstance(pattern, bytes) else pattern
    letters = "".join(
        letter
        for letter, flag in (
            ("i", re.IGNORECASE),
            ("x", re.VERBOSE),
            ("s", re.DOTALL),
            ("m", re.MULTILINE),
            ("a", re.ASCII),
        )
        if flags & flag
    )
    return f"(?{letters}){pattern}" if letters else pattern


# calls

_counts: dict[int, int] = {}
_facts: set[int] = set()
_patterns: dict[tuple[str, int, str], None] = {}
"""Regular expressions that were used, each with the file and the line that used it."""

_call_places: dict[int, tuple[str, int]] = {}
"""File and line of each call, by its number."""

_places: list[tuple[str, int]] = []
"""File and line of each statement, by its number."""


def _run_calls(descriptor: int, job: Any) -> None:
    until = _used_seconds() + float(job["seconds"])
    start = probe.START
    original = os.path.join(start, "0")
    entries = os.listdir(start)
    os.mkdir(original)
    for entry in entries:
        os.rename(os.path.join(start, entry), os.path.join(original, entry))
    instrument = _Instrumentation({*job["files"]}, start)
    instrument.install()
    os.chdir(original)
    path = [*sys.path]
    if not job["is_isolated"]:
        program = os.path.abspath(job["program"])
        sys.path.insert(0, original if job["is_module"] else os.path.dirname(os.path.realpath(program)))
    for name in job["modules"]:
        with suppress(BaseException):
            importlib.import_module(name)
    sys.path[:] = path
    gc.freeze()  # or each child copies the pages of all objects when it collects garbage
    for number, call in enumerate(job["calls"], start=1):
        if _used_seconds() > until:
            return
        place = os.path.join(start, str(number))
        os.mkdir(place)
        work, out, facts = (os.path.join(place, name) for name in ("work", "out", "facts"))
        shutil.copytree(original, work, symlinks=True)
        for name, content in call["files"].items():
            with open(os.path.join(work, name), "w", encoding="utf-8", newline="") as file:
                file.write(content)
        child = os.fork()
        if not child:
            probe.become(work, out, call["stdin"].encode(errors="surrogateescape"))
            os.close(descriptor)
            used = int(time.process_time())
            resource.setrlimit(resource.RLIMIT_CPU, (used + _MAX_CALL_SECONDS, used + _MAX_CALL_SECONDS + 1))
            _run_call(job, call, facts)
        status = probe.wait_for(child, _MAX_WAITING_SECONDS)
        if status == -signal.SIGXCPU:
            status = None
        with open(out, "rb") as file:
            written = file.read(_MAX_OUTPUT_BYTES)
        result: dict[str, Any] = {"exit_code": status, "stdout": base64.b64encode(written).decode()}
        with suppress(OSError, ValueError), open(facts, encoding="ascii") as file:
            result |= json.loads(file.read())
        probe.report_result(descriptor, result)
        shutil.rmtree(place, ignore_errors=True)


def _accident_of(error: BaseException) -> str:
    """Return the class of an exception that no `raise` statement raises; empty for a raised one."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is None:
        return ""
    line = linecache.getline(traceback.tb_frame.f_code.co_filename, traceback.tb_lineno)
    return "" if line.lstrip().startswith("raise") else type(error).__name__


def _used_seconds() -> float:
    """Return the processor time of this process and of the ended ones, in seconds."""
    return sum(os.times()[:4])


def _run_call(job: Any, call: Any, facts: str) -> None:
    """Run the program in a forked process, write what it did, and end."""
    _counts.clear()
    _facts.clear()
    _patterns.clear()
    code: Any = 1
    error: BaseException | None = None
    try:
        probe.run_program({**job, "call": call.get("call")}, call["arguments"])
        code = 0
    except SystemExit as end:
        code = end.code
        # The exception of a call ends its process.
        error = end.__context__ if call.get("call") else None
    except BaseException as raised:  # noqa: BLE001 - the interpreter would end with this code, too
        error = raised
    with suppress(BaseException):
        sys.stdout.flush()
    lines: dict[str, list[int]] = {}
    for place in _counts:
        key, line = _places[place]
        lines.setdefault(key, []).append(line)
    counted = {
        zlib.crc32(f"{place}:{count if count <= _MAX_COUNT else count.bit_length() + _MAX_COUNT}".encode())
        for place, count in _counts.items()
    }
    with suppress(OSError), open(facts, "w", encoding="ascii") as file:
        used = {"lines": lines, "features": [*counted | _facts], "patterns": [*_patterns]}
        file.write(json.dumps(used | ({} if error is None else {"accident": _accident_of(error)})))
    os._exit((code or 0) & 0xFF if code is None or isinstance(code, int) else 1)


class _Instrumentation:
    """Import hook that adds recording to the measured files."""

    def __init__(self, files: set[str], start: str) -> None:
        self._files = files
        self._copies = re.compile(rf"{re.escape(start)}/\d+/(?:work/)?")

    def install(self) -> None:
        """Let imports compile the measured files with recording."""
        get_code = importlib.machinery.SourceFileLoader.get_code
        builtins = importlib.import_module("builtins")
        for function in (_at, _compared, _truth, _called, _value):
            setattr(builtins, f"_peripety{function.__name__}", function)

        def instrumented(loader: Any, fullname: str) -> Any:
            key = self._copies.sub("", os.path.realpath(loader.path))
            if key in self._files:
                with (
                    suppress(OSError, SyntaxError, ValueError, RecursionError),
                    open(loader.path, "rb") as file,
                ):
                    tree = _Instrument(key).visit(ast.parse(file.read()))
                    return compile(ast.fix_missing_locations(tree), loader.path, "exec", dont_inherit=True)
            return get_code(loader, fullname)

        importlib.machinery.SourceFileLoader.get_code = instrumented  # type: ignore[assignment, method-assign]


_NOT_WRAPPED = {"super", "locals", "globals", "vars", "dir", "eval", "exec"}


class _Instrument(ast.NodeTransformer):
    """Transformer that records statements, comparisons, conditions, calls and results of functions."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._depth = 0

    def _wrap(self, function: str, node: ast.AST, *arguments: Any) -> Any:
        place = f"{self._key}:{getattr(node, 'lineno', 0)}:{getattr(node, 'col_offset', 0)}"
        value = zlib.crc32(f"{function}:{place}".encode())
        _call_places[value] = self._key, getattr(node, "lineno", 0)
        number = ast.Constant(value)
        return ast.copy_location(
            ast.Call(ast.Name(f"_peripety_{function}", ast.Load()), [number, *arguments], []), node
        )

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        for field in ("body", "orelse", "finalbody"):
            statements = getattr(node, field, None)
            if isinstance(statements, list) and statements and isinstance(statements[0], ast.stmt):
                setattr(node, field, [part for one in statements for part in self._marked(one)])
        return node

    def _marked(self, statement: ast.stmt) -> list[ast.stmt]:
        is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        is_future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        if is_text or is_future:
            return [statement]
        _places.append((self._key, statement.lineno))
        mark = ast.Call(ast.Name("_peripety_at", ast.Load()), [ast.Constant(len(_places) - 1)], [])
        return [ast.copy_location(ast.Expr(mark), statement), statement]

    def _visit_function(self, node: Any) -> Any:
        self._depth += 1
        node.body = [self.visit(part) for part in node.body]
        self._depth -= 1
        node.body = [part for one in node.body for part in self._marked(one)]
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = _visit_function  # noqa: N815 - names of the standard library

    def visit_JoinedStr(self, node: Any) -> Any:
        return node

    def visit_Compare(self, node: Any) -> Any:
        self.generic_visit(node)
        name = type(node.ops[0]).__name__
        if not self._depth or len(node.ops) > 1 or name not in _OPERATORS:
            return node
        return self._wrap("compared", node, ast.Constant(name), node.left, node.comparators[0])

    def visit_BoolOp(self, node: Any) -> Any:
        self.generic_visit(node)
        if self._depth:
            node.values = [self._wrap("truth", value, value) for value in node.values]
        return node

    def visit_IfExp(self, node: Any) -> Any:
        self.generic_visit(node)
        if self._depth:
            node.test = self._wrap("truth", node.test, node.test)
        return node

    def visit_Call(self, node: Any) -> Any:
        self.generic_visit(node)
        if not self._depth or (isinstance(node.func, ast.Name) and node.func.id in _NOT_WRAPPED):
            return node
        call = self._wrap("called", node, node.func, *node.args)
        call.keywords = node.keywords
        return call

    def visit_Return(self, node: Any) -> Any:
        self.generic_visit(node)
        if node.value is not None:
            node.value = self._wrap("value", node, node.value)
        return node


def _note(place: int, fact: str) -> None:
    _facts.add(zlib.crc32(f"{place}:{fact}".encode()))


def _at(place: int) -> None:
    _counts[place] = _counts.get(place, 0) + 1


_OPERATORS: dict[str, Any] = {
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
    "In": lambda one, other: one in other,
    "NotIn": lambda one, other: one not in other,
}


def _compared(place: int, name: str, one: Any, other: Any) -> Any:
    result = _OPERATORS[name](one, other)
    with suppress(Exception):
        if isinstance(one, (int, float)) and isinstance(other, (int, float)):
            gap = one - other
            _note(place, "equal" if not gap else f"{'more' if gap > 0 else 'less'}{abs(gap) == 1}")
        elif isinstance(one, (int, str)) and bool(result) is (name in ("Eq", "In")):
            _note(place, f"is {repr(one)[:_MAX_SHOWN]}")
        else:
            _note(place, f"{bool(result)}")
    return result


def _truth(place: int, value: Any) -> Any:
    with suppress(Exception):
        _note(place, f"{bool(value)}")
    return value


def _called(place: int, function: Any, *arguments: Any, **options: Any) -> Any:
    result = function(*arguments, **options)
    with suppress(Exception):
        owner = getattr(function, "__self__", None)
        used = owner if isinstance(owner, re.Pattern) else _pattern_of(function, arguments, options)
        if used is not None and len(_patterns) < _MAX_PATTERNS:
            _patterns[*_call_places[place], _text_of_pattern(used)[:_MAX_PATTERN]] = None
        fact = _kind_of(result)
        if isinstance(result, str):
            given = (owner, *arguments)
            fact = "same" if any(isinstance(one, str) and one == result for one in given) else fact
            if isinstance(owner, str) and function.__name__ == "replace":
                fact += str(min(owner.count(arguments[0]), 2))
        _note(place, fact)
    return result


def _pattern_of(function: Any, arguments: Any, options: Any) -> Any:
    """Return the regular expression that a function of the standard library is called with; else None."""
    if getattr(function, "__module__", "") != "re" or not arguments or function.__name__ == "escape":
        return None
    pattern = arguments[0]
    return re.compile(pattern, options.get("flags", 0)) if isinstance(pattern, str) else pattern


def _value(place: int, value: Any) -> Any:
    with suppress(Exception):
        _note(place, _kind_of(value))
    return value


def _kind_of(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return str(value)
    if isinstance(value, (int, float)):
        return "negative" if value < 0 else str(value) if value in (0, 1) else "positive"
    if isinstance(value, (str, bytes)):
        return f"text{min(len(value), 1)}"
    if isinstance(value, (list, tuple, dict, set)):
        return f"{type(value).__name__}{min(len(value), 3)}"
    if isinstance(value, re.Match):
        return "match" + "".join("01"[part is not None] for part in value.groups())
    return type(value).__name__


if __name__ == "__main__":
    main()
