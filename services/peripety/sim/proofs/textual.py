"""String operators and `in` of JSONLogic over abstract data."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

from peripety.sim._core import CoreError
from peripety.sim._pure.convert import as_text
from peripety.sim._pure.operators import substring
from peripety.sim.proofs.comparisons import compared
from peripety.sim.proofs.domain import (
    ANY_TEXT,
    ARRAY,
    BOTTOM,
    FEW,
    MOST_TEXTS,
    OBJECT,
    TEXT,
    Value,
    booleans,
    item_of,
    literal,
    present,
    single,
    texts_of,
)
from peripety.sim.proofs.readings import FAILS, OUTGROWS

if TYPE_CHECKING:
    from collections.abc import Callable

    from peripety.sim.proofs.evaluation import Evaluation

__all__ = ["TEXTUAL"]


def _in(run: Evaluation, operand: Any, data: Value) -> Value:
    values = run.arguments(operand, data)
    if len(values) < 2 or not isinstance(operand, list):  # noqa: PLR2004 - needle and haystack
        return run.fail(FAILS)
    needle, haystack = values[0], values[1]
    if not needle.kinds or not haystack.kinds:
        return BOTTOM
    true = False
    false = bool(haystack.kinds & ~(ARRAY | TEXT)) or bool(haystack.kinds & TEXT and needle.kinds != TEXT)
    if haystack.array is not None:
        item = present(item_of(haystack.array))
        run.burn(haystack.array.most * (FEW if needle.array or needle.object else 1))
        same = compared("===", needle, item) if haystack.array.most else None
        run.fails |= same.fails if same else 0
        true = same is not None and same.true
        false = false or same is None or same.false or haystack.array.least == 0
    if haystack.kinds & needle.kinds & TEXT:
        if needle.texts is None or haystack.texts is None:
            return _uncertain(run, haystack)
        run.burn(max(map(len, haystack.texts), default=0) // 1024)
        found = {one in other for one in needle.texts for other in haystack.texts}
        true, false = true or True in found, false or False in found
    return booleans(true=true, false=false)


def _uncertain(run: Evaluation, haystack: Value) -> Value:
    if haystack.texts is None:
        run.burn(FEW)  # a step for each 1,024 characters of a text of 64 KiB
    return booleans(true=True, false=True)


def _cat(run: Evaluation, operand: Any, data: Value) -> Value:
    values = run.spread(operand, data)
    if values is None:
        run.fails |= FAILS | OUTGROWS
        return ANY_TEXT
    parts: list[list[str]] = []
    known = True
    for value in values:
        if not value.kinds or value.kinds == OBJECT:
            return run.fail(FAILS)
        if value.kinds & OBJECT or value.array is not None:
            run.fails |= FAILS | OUTGROWS
            known = False
        options = _spelled(value)
        known = known and options is not None
        parts.append(options or [])
        if value.kinds & TEXT and value.texts is None:
            run.fails |= OUTGROWS
    if not known:
        return ANY_TEXT
    texts = set()
    for chosen in product(*parts):
        texts.add("".join(chosen))
        if len(texts) > MOST_TEXTS:
            break
    run.write(sum(max(map(len, options)) for options in parts))
    return texts_of(frozenset(texts))


def _spelled(value: Value) -> list[str] | None:
    """Return the possible texts of a value, if they are few."""
    if value.kinds == TEXT:
        return None if value.texts is None else sorted(value.texts)
    only = single(value)
    return None if only is None else [as_text(only[0])]


def _substr(run: Evaluation, operand: Any, data: Value) -> Value:
    values = run.arguments(operand, data)
    if len(values) < 2 or not all(value.kinds for value in values):  # noqa: PLR2004 - a text and a position
        return run.fail(FAILS)
    only = [single(value) for value in values]
    if all(only):
        source, *cut = [each[0] for each in only if each]
        try:
            text = as_text(source)
            cut_out = substring(text, cut[0], cut[1] if len(cut) > 1 else None)
        except CoreError:
            return run.fail(FAILS)
        run.burn(len(text) // 1024)
        run.write(len(cut_out))
        return literal(cut_out)
    run.fails |= FAILS | OUTGROWS
    return ANY_TEXT


TEXTUAL: dict[str, Callable[[Evaluation, Any, Value], Value]] = {"in": _in, "cat": _cat, "substr": _substr}
"""Operators `in`, `cat` and `substr`."""
