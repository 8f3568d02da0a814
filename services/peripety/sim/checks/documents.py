"""Static checks of the whole document: ids, sizes, keys, times and the budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.errors import Finding
from peripety.sim._core import CoreError
from peripety.sim._pure import durations
from peripety.sim._pure.paths import FORBIDDEN_KEYS
from peripety.sim._pure.size import MAX_STATE_NODES, MAX_STATE_TEXT, measure
from peripety.sim.checks.world import all_effects
from peripety.sim.schema import pointer

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["check_document", "check_duration"]

MAX_EFFECTS = 4096
_SECTIONS = ("entities", "actions", "random_events", "loss_conditions", "win_conditions")


def check_document(spec: dict[str, Any]) -> Iterator[Finding]:
    """Yield the findings about the whole document."""
    yield from _forbidden_keys(spec)
    yield from _duplicate_ids(spec)
    yield from _sizes(spec)
    yield from _clock(spec)
    yield from _budget(spec["negativity_budget"])


def _forbidden_keys(spec: dict[str, Any]) -> Iterator[Finding]:
    pending: list[tuple[Any, tuple[str | int, ...]]] = [(spec, ())]
    while pending:
        value, path = pending.pop()
        children = (
            value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        )
        for key, item in children:
            if key in FORBIDDEN_KEYS:
                message = f"the key '{key}' is dangerous to clients in other languages; choose another"
                yield Finding("FORBIDDEN_KEY", pointer((*path, key)), message)
            pending.append((item, (*path, key)))


def _duplicate_ids(spec: dict[str, Any]) -> Iterator[Finding]:
    ends: dict[str, str] = {}
    for section in _SECTIONS:
        seen = ends if section.endswith("_conditions") else {}
        for index, item in enumerate(spec.get(section, [])):
            place = pointer((section, index, "id"))
            if item["id"] in seen:
                yield Finding(
                    "DUPLICATE_ID", place, f"duplicate id '{item['id']}', already used at {seen[item['id']]}"
                )
            seen.setdefault(item["id"], place)


def _sizes(spec: dict[str, Any]) -> Iterator[Finding]:
    size = measure(spec["state"])
    if size.nodes > MAX_STATE_NODES:
        yield Finding(
            "LIMIT_EXCEEDED", "/state", f"{size.nodes} values; at most {MAX_STATE_NODES} are accepted"
        )
    if size.text > MAX_STATE_TEXT:
        yield Finding(
            "LIMIT_EXCEEDED", "/state", f"{size.text} bytes of text; at most {MAX_STATE_TEXT} are accepted"
        )
    effects = sum(1 for _ in all_effects(spec))
    if effects > MAX_EFFECTS:
        yield Finding("LIMIT_EXCEEDED", "", f"{effects} effects; at most {MAX_EFFECTS} are accepted")


def _clock(spec: dict[str, Any]) -> Iterator[Finding]:
    if "clock" not in spec:
        return
    text = spec["clock"]["turn"]
    yield from check_duration(text, "/clock/turn")
    try:
        if durations.minutes(text) == 0:
            yield Finding("BAD_DURATION", "/clock/turn", "a turn must take at least a minute")
    except CoreError:
        return


def check_duration(text: str, place: str) -> Iterator[Finding]:
    """Yield a finding if a text is not a duration."""
    try:
        durations.minutes(text)
    except CoreError as error:
        yield Finding(error.code, place, error.message)


def _budget(budget: dict[str, Any]) -> Iterator[Finding]:
    if budget.get("max_fail_rate", 1) < budget["min_fail_rate"]:
        message = "max_fail_rate is below min_fail_rate; no scenario can meet both"
        yield Finding("BUDGET_CONTRADICTION", "/negativity_budget/max_fail_rate", message)
