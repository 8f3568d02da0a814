"""Code generation for string operators and for `missing`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from peripety.engine._reference.codegen.code import (
    CodeFragment,
    NotLoweredError,
    ValueKind,
    combine,
    production_cost,
)
from peripety.engine.paths import split_variable

if TYPE_CHECKING:
    from collections.abc import Callable

    from peripety.engine._reference.codegen.expressions import CodeScope, ExpressionCompiler


# The longest text of a number or boolean.
_LONGEST_NUMBER = 32


def _cat(lower: ExpressionCompiler, operand: Any, scope: CodeScope) -> CodeFragment:
    parts = [lower.value(item, scope) for item in (operand if isinstance(operand, list) else [operand])]
    if isinstance(operand, dict) and parts[0].kind.is_list:
        (items,) = parts  # the items are the arguments
        bound = items.length * _max_bytes(replace(items, kind=items.kind.item_kind))
        text = f"''.join(map(as_text, {items.text}))"
        return lower.limit(
            combine(text, ValueKind.TEXT, parts, bound=bound, steps=items.length + bound, atom=True),
        )
    texts = [_to_text(part) for part in parts]
    bound = int(sum(text.bound for text in texts))
    joined = f"''.join(({''.join(f'{text.text}, ' for text in texts)}))"
    return lower.limit(combine(joined, ValueKind.TEXT, texts, bound=bound, steps=bound, atom=True))


def _substr(lower: ExpressionCompiler, operand: Any, scope: CodeScope) -> CodeFragment:
    if not isinstance(operand, list) or len(operand) not in {2, 3}:
        raise NotLoweredError("a part of a text without its place")
    source, *places = [lower.value(item, scope) for item in operand]
    if any(place.kind.is_list for place in places):
        raise NotLoweredError("a place that is an array")
    text = _to_text(source)
    arguments = ", ".join([text.text, *(place.text for place in places), *["None"] * (2 - len(places))])
    # A position may be a text that is not a number.
    fails = any(place.kind is ValueKind.TEXT for place in places)
    items, bound = [text, *places], int(text.bound)
    return combine(
        f"substring({arguments})",
        ValueKind.TEXT,
        items,
        bound=bound,
        steps=bound,
        fails=fails,
        atom=True,
    )


def _to_text(item: CodeFragment) -> CodeFragment:
    if item.kind is ValueKind.TEXT and not item.may_be_null:
        return item
    return replace(
        item,
        text=f"as_text({item.text})",
        kind=ValueKind.TEXT,
        bound=_max_bytes(item),
        length=0,
        literal=None,
        may_be_null=False,
        is_atom=True,
    )


def _max_bytes(item: CodeFragment) -> int:
    """Return the maximum number of bytes of a value as text."""
    if item.kind.is_list:
        return item.length * (1 + _max_bytes(replace(item, kind=item.kind.item_kind)))
    return int(item.bound) if item.kind is ValueKind.TEXT else _LONGEST_NUMBER


def _missing(lower: ExpressionCompiler, operand: Any, scope: CodeScope) -> CodeFragment:
    paths = operand if isinstance(operand, list) else [operand]
    return _find_missing(lower, paths[0] if paths and isinstance(paths[0], list) else paths, scope)


def _missing_some(lower: ExpressionCompiler, operand: Any, scope: CodeScope) -> CodeFragment:
    if not isinstance(operand, list) or len(operand) != 2:  # noqa: PLR2004
        raise NotLoweredError("not a number and paths")
    needed, paths = operand
    if not isinstance(needed, float) or not isinstance(paths, list):
        raise NotLoweredError("a number or paths that are computed")
    absent = _find_missing(lower, paths, scope)
    text = f"(lambda found: [] if len(found) <= {len(paths) - needed!r} else found)({absent.text})"
    return replace(absent, text=text, steps=absent.steps + 2)


def _find_missing(lower: ExpressionCompiler, paths: list[Any], scope: CodeScope) -> CodeFragment:
    """Compile the list of paths whose value is absent, null, or empty."""
    if not all(isinstance(path, str) for path in paths):
        raise NotLoweredError("paths that are computed")
    names = [lower.value(path, scope) for path in paths]
    found = [scope.read_variable(split_variable(path)) for path in paths]
    pairs = "".join(
        f"({name.text}, {_missing_test(code)}), " for name, code in zip(names, found, strict=True)
    )
    return combine(
        f"[name for name, gone in ({pairs}) if gone]",
        ValueKind.TEXTS,
        names,
        bound=max((name.bound for name in names), default=0.0),
        length=len(names),
        steps=2 + sum(1 + production_cost(name) for name in names),
        # An absent element counts as missing as well, but reading it abandons the run.
        fails=any(code is not None and code.may_fail for code in found),
        atom=True,
    )


def _missing_test(code: CodeFragment | None) -> str:
    if code is None or code.kind is ValueKind.NULL:
        return "True"
    if code.kind is ValueKind.TEXT:
        return f"not {code.operand}"
    return f"{code.operand} is None" if code.may_be_null or code.may_fail else "False"


TEXT_OPERATORS: dict[str, Callable[[ExpressionCompiler, Any, CodeScope], CodeFragment]] = {
    "cat": _cat,
    "substr": _substr,
    "missing": _missing,
    "missing_some": _missing_some,
}
