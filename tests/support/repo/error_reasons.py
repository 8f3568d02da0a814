"""Static collection of the error reasons that the code can raise.

A reason is the `code` of a `PeripetyError`: a class default, or the argument of a raise site. An argument may
be a literal, a constant, or the parameter of a helper, whose callers then give the literal.
"""

from __future__ import annotations

import ast
import functools
import re
from collections import defaultdict
from typing import TYPE_CHECKING, TypeAlias

from support.repo.repository import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator


_SOURCES = (ROOT / "services/peripety", ROOT / "simcore/python/peripety")
_REASON = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*")
_KEYWORDS = ("code", "reason")

_Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


class _Module:
    """Syntax tree of a module, with its constants and imports."""

    def __init__(self, name: str, tree: ast.Module) -> None:
        self.name = name
        self.tree = tree
        self.constants: dict[str, ast.expr] = {}
        self.imports: dict[str, tuple[str, str]] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                self.constants.setdefault(node.targets[0].id, node.value)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
                self.constants.setdefault(node.target.id, node.value)
            elif isinstance(node, ast.ImportFrom) and node.module:
                self.imports |= {(a.asname or a.name): (node.module, a.name) for a in node.names}


@functools.cache
def _modules() -> dict[str, _Module]:
    found = {}
    for source, path in sorted((root, path) for root in _SOURCES for path in root.rglob("*.py")):
        parts = path.relative_to(source.parent).with_suffix("").parts
        if parts[1] != "api":
            name = ".".join(part for part in parts if part != "__init__")
            found[name] = _Module(name, ast.parse(path.read_text(encoding="utf-8")))
    return found


@functools.cache
def _calls() -> dict[str, list[tuple[_Module, ast.Call, _Function | None]]]:
    """Return the calls of every function by its last name."""
    found = defaultdict(list)
    for module in _modules().values():
        for call, function in _calls_of(module.tree, None):
            target = call.func
            name = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")
            found[name].append((module, call, function))
    return dict(found)


def _calls_of(node: ast.AST, function: _Function | None) -> Iterator[tuple[ast.Call, _Function | None]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call):
            yield child, function
        inside = child if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) else function
        yield from _calls_of(child, inside)


@functools.cache
def error_classes() -> frozenset[str]:
    """Return the names of `PeripetyError` and of its subclasses in the tree."""
    classes = {"PeripetyError"}
    bases = {
        node.name: {ast.unparse(base).rpartition(".")[2] for base in node.bases}
        for module in _modules().values()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef)
    }
    while more := {name for name, parents in bases.items() if parents & classes} - classes:
        classes |= more
    return frozenset(classes)


def raised_reasons() -> dict[str, set[str]]:
    """Return every reason in the code with the modules that raise it."""
    found: dict[str, set[str]] = defaultdict(set)
    for reason, module in (*_defaults(), *_arguments()):
        found[reason].add(module)
    return dict(found)


def _defaults() -> Iterator[tuple[str, str]]:
    for module in _modules().values():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef) and node.name in error_classes():
                for statement in node.body:
                    if (
                        isinstance(statement, ast.Assign)
                        and ast.unparse(statement.targets[0]) == "default_code"
                    ):
                        yield ast.literal_eval(statement.value), module.name


def _arguments() -> Iterator[tuple[str, str]]:
    for name in error_classes() | _ALIASES:
        for module, call, function in _calls().get(name, ()):
            for keyword in call.keywords:
                if keyword.arg == "code":
                    for reason in _values(module, keyword.value, function, ()):
                        yield reason, module.name


_ALIASES = frozenset({"cls", "kind", "error", "build"})
"""Names of variables that hold an error class."""


def _values(module: _Module, value: ast.expr, function: _Function | None, seen: tuple[str, ...]) -> set[str]:
    if isinstance(value, ast.Constant):
        return {value.value} if isinstance(value.value, str) and _REASON.fullmatch(value.value) else set()
    if isinstance(value, ast.Name):
        return _of_name(module, value.id, function, seen)
    if isinstance(value, ast.Subscript | ast.Dict | ast.IfExp | ast.BoolOp | ast.Call | ast.Tuple | ast.List):
        inner = [child for child in ast.iter_child_nodes(value) if isinstance(child, ast.expr)]
        return set().union(*(_values(module, child, function, seen) for child in inner))
    return set()


def _of_name(module: _Module, name: str, function: _Function | None, seen: tuple[str, ...]) -> set[str]:
    if function is not None:
        arguments = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
        if name in arguments or name in {a.arg for a in function.args.kwonlyargs}:
            return _of_parameter(module, function, name, arguments, seen)
    if name in module.constants:
        return _values(module, module.constants[name], None, seen)
    source, original = module.imports.get(name, ("", ""))
    if source in _modules() and original in _modules()[source].constants:
        return _values(_modules()[source], _modules()[source].constants[original], None, seen)
    return set()


def _of_parameter(
    module: _Module,
    function: _Function,
    name: str,
    arguments: list[str],
    seen: tuple[str, ...],
) -> set[str]:
    if function.name in seen or name not in _KEYWORDS:
        return set()
    found: set[str] = set()
    for caller, call, outer in _calls().get(function.name, ()):
        if function.name.startswith("_") and caller is not module:
            continue
        shift = 1 if arguments[:1] in (["self"], ["cls"]) else 0
        given = {k.arg: k.value for k in call.keywords}
        place = arguments.index(name) - shift if name in arguments else len(call.args)
        value = given.get(name) or (call.args[place] if place < len(call.args) else None)
        if value is not None:
            found |= _values(caller, value, outer, (*seen, function.name))
    return found
