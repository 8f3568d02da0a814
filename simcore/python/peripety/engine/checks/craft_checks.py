"""Warnings from the craft of game masters, each only where its key is used."""

from __future__ import annotations

import re
from itertools import combinations
from typing import TYPE_CHECKING, Any

from peripety.engine.lowering import iter_conditions, iter_story_effects
from peripety.engine.schema_validation import format_pointer
from peripety.errors import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator


_LEAST_CLUES = 3
# Shorter words, such as articles, are in most texts.
_WORD = re.compile(r"\w{5,}")


def check_craft(spec: dict[str, Any]) -> Iterator[Finding]:
    """Yield the warnings about a written document of version 1.1."""
    clues = spec.get("clues", {})
    by_action = _find_clues_without_luck(spec)
    revealed = {*by_action, *_list_revealed(spec["random_events"])}
    conclusions: dict[str, list[str]] = {}
    for name, clue in clues.items():
        if "about" in clue:
            conclusions.setdefault(clue["about"], []).append(name)
    for about, names in conclusions.items():
        place = f"/clues{format_pointer([names[0]])}/about"
        if len(names) < _LEAST_CLUES:
            message = f"the conclusion '{about[:80]}' has {len(names)} of at least {_LEAST_CLUES} clues"
            yield Finding("FEW_CLUES", place, message, Severity.WARNING)
        if not by_action.intersection(names):
            message = f"no action reveals a clue for the conclusion '{about[:80]}' without luck"
            yield Finding("CLUES_BY_LUCK", place, message, Severity.WARNING)
    for name, statement in spec.get("statements", {}).items():
        if statement["true"] is not True and statement.get("broken_by") not in revealed:
            message = "it can be false, but nothing reveals a clue that breaks it"
            yield Finding("UNBROKEN_LIE", f"/statements{format_pointer([name])}", message, Severity.WARNING)
    yield from _check_wants(spec.get("entities", []))


def _list_revealed(rules: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the clues that rules reveal, at once or later."""
    for rule in rules:
        for _, effect, _ in iter_story_effects(rule["effects"], ""):
            if effect["op"] == "reveal":
                yield effect["clue"]


def _find_clues_without_luck(spec: dict[str, Any]) -> set[str]:
    """Return the clues that actions reveal which need no other clue, or only such clues."""
    found: set[str] = set()
    while True:
        free = [action for action in spec["actions"] if _list_needed(action["preconditions"]) <= found]
        now = {*_list_revealed(free)}
        if now <= found:
            return found
        found |= now


def _list_needed(condition: Any) -> set[str]:
    """Return the clues without which a condition cannot hold."""
    match condition:
        case {"and": [*parts]}:
            return set().union(*map(_list_needed, parts))
        case {"known": _}:
            return {name for _, name, _ in iter_conditions(condition, "")}
        case _:
            return set()


def _check_wants(entities: list[dict[str, Any]]) -> Iterator[Finding]:
    wanting = [(index, entity) for index, entity in enumerate(entities) if "wants" in entity]
    if len(wanting) > 1 and not any(_cross(one, other) for (_, one), (_, other) in combinations(wanting, 2)):
        message = f"the wants of {len(wanting)} entities share no word, and none names another entity"
        yield Finding("WANTS_APART", f"/entities/{wanting[0][0]}/wants", message, Severity.WARNING)


def _cross(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return True if two wants share a word, or one names the other entity."""
    texts = [entity["wants"].casefold() for entity in (one, other)]
    if {*_WORD.findall(texts[0])} & {*_WORD.findall(texts[1])}:
        return True
    return any(
        name.casefold() in text
        for text, entity in zip(texts, (other, one), strict=True)
        for name in (entity["id"], entity.get("name", entity["id"]))
    )
