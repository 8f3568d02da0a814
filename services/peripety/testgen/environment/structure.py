"""Outline of a file: functions with parameters, keys, columns and headings."""

from __future__ import annotations

import ast
import csv
import json
import re
import tomllib
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["structure_of"]

_MOST = 60
_LONGEST = 200
_CODE = re.compile(
    r"""^[^\S\n]*(?:export\s+|default\s+|pub(?:\([^)]*\))?\s+|public\s+|private\s+|protected\s+|static\s+|async\s+)*
    (?P<kind>function|func|fn|class|interface|struct|enum|trait|type|def|impl|module|package)\s+
    (?P<name>[A-Za-z_$][\w$]*(?:\.[A-Za-z_]\w*)?)\s*(?P<rest>\([^)\n]{0,120}\))?""",
    re.MULTILINE | re.VERBOSE,
)
_ASSIGNED = re.compile(r"^(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=", re.MULTILINE)
_HEADING = re.compile(r"^#{1,3}[^\S\n]+(\S.*)$", re.MULTILINE)
_YAML_KEY = re.compile(r"^([A-Za-z_][\w.-]*)\s*:", re.MULTILINE)
_TABLE = re.compile(
    r"create\s+table\s+(?:if\s+not\s+exists\s+)?([\w.\"`]+)\s*\(([^;]{0,4000})\)", re.IGNORECASE
)
_SECTION = re.compile(r"^\[([^\]\n]+)\]\s*$", re.MULTILINE)


def structure_of(name: str, text: str) -> tuple[str, ...]:
    """Return the outline of a file, at most 60 entries of 200 characters; empty for unknown kinds.

    Args:
        name: the file name.
        text: its content, or the beginning of it.
    """
    suffix = name.rpartition(".")[2].lower()
    look = _LOOKS.get(suffix)
    if look is None:
        return ()
    try:
        return tuple(entry[:_LONGEST] for entry in islice(look(text), _MOST))
    except (ValueError, RecursionError, MemoryError, SyntaxError, csv.Error):
        return ()


def _python(text: str) -> Iterator[str]:
    for node in ast.parse(text).body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield f"def {node.name}({ast.unparse(node.args)})"
            case ast.ClassDef():
                yield f"class {node.name}"
                for inner in node.body:
                    if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
                        yield f"def {node.name}.{inner.name}({ast.unparse(inner.args)})"
            case ast.Import() | ast.ImportFrom():
                yield ast.unparse(node)
            case ast.Assign(targets=[ast.Name(id=assigned)]) if assigned.isupper():
                yield assigned
        yield from _parameters(node)


def _parameters(node: ast.AST) -> Iterator[str]:
    """Yield the command-line options that a program declares."""
    for call in ast.walk(node):
        match call:
            case ast.Call(func=ast.Attribute(attr="add_argument" | "add_option" | "option")):
                names = [one.value for one in call.args if isinstance(one, ast.Constant)]
                yield from (f"parameter {name}" for name in names if isinstance(name, str))


def _code(text: str) -> Iterator[str]:
    for found in _CODE.finditer(text):
        yield f"{found['kind']} {found['name']}{found['rest'] or ''}"


def _json(text: str) -> Iterator[str]:
    yield from _keys(json.loads(text))


def _json_lines(text: str) -> Iterator[str]:
    yield from _keys(json.loads(text.partition("\n")[0]))


def _toml(text: str) -> Iterator[str]:
    yield from _keys(tomllib.loads(text))


def _keys(value: Any) -> Iterator[str]:
    """Yield the keys of an object, and of the objects in it."""
    if isinstance(value, list):
        yield f"array of {len(value)}"
        value = value[0] if value else None
    if isinstance(value, dict):
        for key, inner in value.items():
            yield f"key {key}"
            if isinstance(inner, dict):
                yield from (f"key {key}.{name}" for name in inner)


def _separated(text: str) -> Iterator[str]:
    first = text.partition("\n")[0]
    delimiter = "\t" if "\t" in first else ";" if first.count(";") > first.count(",") else ","
    for column in next(csv.reader([first], delimiter=delimiter), ()):
        yield f"column {column.strip()}"


def _headings(text: str) -> Iterator[str]:
    for found in _HEADING.finditer(text):
        yield f"heading {found[1].rstrip().rstrip('#').rstrip()}"


def _sql(text: str) -> Iterator[str]:
    for found in _TABLE.finditer(text):
        yield f"table {found[1]}({' '.join(found[2].split())})"


def _each(what: str, pattern: re.Pattern[str]) -> Callable[[str], Iterator[str]]:
    return lambda text: (f"{what} {found[1]}" for found in pattern.finditer(text))


_LOOKS: dict[str, Callable[[str], Iterator[str]]] = {
    "py": _python,
    "json": _json,
    "jsonl": _json_lines,
    "toml": _toml,
    "csv": _separated,
    "tsv": _separated,
    "sql": _sql,
    "md": _headings,
    "yaml": _each("key", _YAML_KEY),
    "yml": _each("key", _YAML_KEY),
    "sh": _each("variable", _ASSIGNED),
    "ini": _each("section", _SECTION),
    "cfg": _each("section", _SECTION),
    **dict.fromkeys(
        (
            "js",
            "jsx",
            "ts",
            "tsx",
            "go",
            "rs",
            "java",
            "kt",
            "rb",
            "c",
            "cc",
            "cpp",
            "h",
            "php",
            "swift",
            "cs",
        ),
        _code,
    ),
}
