"""Warnings from the craft of game masters, each only where its key is used."""

from __future__ import annotations

import re
from itertools import combinations
from typing import TYPE_CHECKING, Any

from peripety.engine.lowering import iter_conditions, iter_story_effects, list_subjects
from peripety.engine.schema_validation import format_pointer
from peripety.errors import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator


_LEAST_CLUES = 3
_WORD = re.compile(r"\w+")
# The length of the longest word of a name that may be a title.
_TITLE = 3


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
        if len(names) < _LEAST_CLUES and _is_inferred(spec, names):
            message = f"the conclusion '{about[:80]}' has {len(names)} of at least {_LEAST_CLUES} clues"
            yield Finding("FEW_CLUES", place, message, Severity.WARNING)
        if not by_action.intersection(names):
            message = f"no action reveals a clue for the conclusion '{about[:80]}' without luck"
            yield Finding("CLUES_BY_LUCK", place, message, Severity.WARNING)
    for name, statement in spec.get("statements", {}).items():
        if statement["true"] is not True and statement.get("broken_by") not in revealed:
            message = "it can be false, but nothing reveals a clue that breaks it"
            yield Finding("UNBROKEN_LIE", f"/statements{format_pointer([name])}", message, Severity.WARNING)
    yield from _check_wants(spec)


def _is_inferred(spec: dict[str, Any], names: list[str]) -> bool:
    """Return True if the player has to infer what some clues are about, which no rule tests.

    With a deal, that is the truth that was drawn: a clue for it has a text for each value. Without one, it is
    in a clue that no condition reads and that breaks no statement.
    """
    if spec.get("deal"):
        return any(_find_deal(spec["clues"][name]) for name in names)
    rules = [
        rule.get(key)
        for section in ("actions", "random_events", "loss_conditions", "win_conditions")
        for rule in spec.get(section, [])
        for key in ("preconditions", "when", "derives")
    ]
    rules += [
        effect.get("when")
        for rule in (*spec["actions"], *spec["random_events"])
        for _, effect, _ in iter_story_effects(rule["effects"], "")
    ]
    tested = {name for operator, name, _ in iter_conditions(rules, "") if operator == "known"}
    tested |= {statement.get("broken_by") for statement in spec.get("statements", {}).values()}
    return not tested.issuperset(names)


def _find_deal(clue: dict[str, Any]) -> str | None:
    """Return the id of the deal that the text of a clue depends on; None for a literal text."""
    return clue["text"]["deal"] if isinstance(clue["text"], dict) else None


def _list_revealed(rules: list[dict[str, Any]], known: set[str] | None = None) -> Iterator[str]:
    """Yield the clues that rules reveal, at once or later.

    Args:
        rules: the rules.
        known: the clues that the conditions of the effects may need; None for any.
    """
    for rule in rules:
        for _, effect, _ in iter_story_effects(rule["effects"], ""):
            if effect["op"] == "reveal" and (known is None or _list_needed(effect.get("when")) <= known):
                yield from list_subjects(effect["clue"], rule.get("params", {}))


def _find_clues_without_luck(spec: dict[str, Any]) -> set[str]:
    """Return the clues that actions reveal which need no other clue, or only such clues."""
    found: set[str] = set()
    while True:
        free = [action for action in spec["actions"] if _list_needed(action["preconditions"]) <= found]
        now = {*_list_revealed(free, found)}
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


def _check_wants(spec: dict[str, Any]) -> Iterator[Finding]:
    """Yield a warning if all wants name something of the scenario, and no two the same.

    A want that names nothing of the scenario may cross any other; no rule can decide that.
    """
    wanting = [(index, entity) for index, entity in enumerate(spec.get("entities", [])) if "wants" in entity]
    named = [_list_named(entity["wants"], spec) for _, entity in wanting]
    pairs = combinations(zip(wanting, named, strict=True), 2)
    if len(wanting) > 1 and all(named) and not any(_cross(*pair) for pair in pairs):
        message = (
            f"the wants of {len(wanting)} entities name {', '.join(sorted(set().union(*named)))[:200]},"
            " no two of them the same, and none names another of these entities"
        )
        yield Finding("WANTS_APART", f"/entities/{wanting[0][0]}/wants", message, Severity.WARNING)


def _list_named(text: str, spec: dict[str, Any]) -> set[str]:
    """Return the entities, places, promises and labelled quantities that a text names.

    An entity is also named by a longer word of its name.
    """
    words = _WORD.findall(text.casefold())
    told = f" {' '.join(words)} "
    names = {
        **{entity["id"]: [entity["id"], entity.get("name", "")] for entity in spec.get("entities", [])},
        **{name: [name, place.get("name", "")] for name, place in spec.get("places", {}).items()},
        **{name: [name] for name in spec.get("promises", {})},
        **{path: [label["name"]] for path, label in spec.get("labels", {}).items()},
    }
    for entity in spec.get("entities", []):
        names[entity["id"]] += [part for part in _WORD.findall(entity.get("name", "")) if len(part) > _TITLE]
    return {
        thing
        for thing, spellings in names.items()
        if any(f" {' '.join(_WORD.findall(name.casefold()))} " in told for name in spellings if name)
    }


def _cross(one: tuple[Any, set[str]], other: tuple[Any, set[str]]) -> bool:
    """Return True if two wants name the same, or one names the other entity."""
    ((_, first), named), ((_, second), others) = one, other
    return bool(named & others) or second["id"] in named or first["id"] in others
