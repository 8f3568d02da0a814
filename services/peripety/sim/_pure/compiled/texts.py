"""Code generation for string operators and for `missing`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from peripety.sim._pure.compiled.code import Code, Kind, NotLoweredError, combined, weight
from peripety.sim._pure.paths import split_variable

if TYPE_CHECKING:
    from collections.abc import Callable

    from peripety.sim._pure.compiled.expressions import Expressions, Scope

__all__ = ["TEXT_OPERATORS"]

# The longest text of a number or boolean.
_LONGEST_NUMBER = 32


def _cat(lower: Expressions, operand: Any, scope: Scope) -> Code:
    parts = [lower.value(item, scope) for item in (operand if isinstance(operand, list) else [operand])]
    if isinstance(operand, dict) and parts[0].kind.is_list:
        (items,) = parts  # the items are the arguments
        bound = items.length * _characters(replace(items, kind=items.kind.item))
        text = f"''.join(map(as_text, {items.text}))"
        return lower.held(
            combined(text, Kind.TEXT, parts, bound=bound, steps=items.length + bound, atom=True)
        )
    texts = [_as_text(part) for part in parts]
    bound = int(sum(text.bound for text in texts))
    joined = f"''.join(({''.join(f'{text.text}, ' for text in texts)}))"
    return lower.held(combined(joined, Kind.TEXT, texts, bound=bound, steps=bound, atom=True))


def _substr(lower: Expressions, operand: Any, scope: Scope) -> Code:
    if not isinstance(operand, list) or len(operand) not in {2, 3}:
        raise NotLoweredError("a part of a text without its place")
    source, *places = [lower.value(item, scope) for item in operand]
    if any(place.kind.is_list for place in places):
        raise NotLoweredError("a place that is an array")
    text = _as_text(source)
    arguments = ", ".join([text.text, *(place.text for place in places), *["None"] * (2 - len(places))])
    # A position may be a text that is not a number.
    fails = any(place.kind is Kind.TEXT for place in places)
    items, bound = [text, *places], int(text.bound)
    return combined(
        f"substring({arguments})", Kind.TEXT, items, bound=bound, steps=bound, fails=fails, atom=True
    )


def _as_text(item: Code) -> Code:
    if item.kind is Kind.TEXT and not item.null:
        return item
    return replace(
        item,
        text=f"as_text({item.text})",
        kind=Kind.TEXT,
        bound=_characters(item),
        length=0,
        literal=None,
        null=False,
        atom=True,
    )


def _characters(item: Code) -> int:
    """Return the maximum number of bytes of a value as text."""
    if item.kind.is_list:
        return item.length * (1 + _characters(replace(item, kind=item.kind.item)))
    return int(item.bound) if item.kind is Kind.TEXT else _LONGEST_NUMBER


def _missing(lower: Expressions, operand: Any, scope: Scope) -> Code:
    paths = operand if isinstance(operand, list) else [operand]
    return _absent(lower, paths[0] if paths and isinstance(paths[0], list) else paths, scope)


def _missing_some(lower: Expressions, operand: Any, scope: Scope) -> Code:
    if not isinstance(operand, list) or len(operand) != 2:  # noqa: PLR2004
        raise NotLoweredError("not a number and paths")
    needed, paths = operand
    if not isinstance(needed, float) or not isinstance(paths, list):
        raise NotLoweredError("a number or paths that are computed")
    absent = _absent(lower, paths, scope)
    text = f"(lambda found: [] if len(found) <= {len(paths) - needed!r} else found)({absent.text})"
    return replace(absent, text=text, steps=absent.steps + 2)


def _absent(lower: Expressions, paths: list[Any], scope: Scope) -> Code:
    """Compile the list of paths whose value is absent, null, or empty."""
    if not all(isinstance(path, str) for path in paths):
        raise NotLoweredError("paths that are computed")
    names = [lower.value(path, scope) for path in paths]
    found = [scope.read(split_variable(path)) for path in paths]
    pairs = "".join(f"({name.text}, {_is_gone(code)}), " for name, code in zip(names, found, strict=True))
    return combined(
        f"[name for name, gone in ({pairs}) if gone]",
        Kind.TEXTS,
        names,
        bound=max((name.bound for name in names), default=0.0),
        length=len(names),
        steps=2 + sum(1 + weight(name) for name in names),
        # An absent element counts as missing as well, but reading it abandons the run.
        fails=any(code is not None and code.fails for code in found),
        atom=True,
    )


def _is_gone(code: Code | None) -> str:
    if code is None or code.kind is Kind.NULL:
        return "True"
    if code.kind is Kind.TEXT:
        return f"not {code.operand}"
    return f"{code.operand} is None" if code.null or code.fails else "False"


TEXT_OPERATORS: dict[str, Callable[[Expressions, Any, Scope], Code]] = {
    "cat": _cat,
    "substr": _substr,
    "missing": _missing,
    "missing_some": _missing_some,
}
