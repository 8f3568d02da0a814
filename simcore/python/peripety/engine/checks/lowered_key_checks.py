"""Static checks of the keys that are lowered: reserved names, and references to what exists."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from peripety.engine._reference.variants import expand_action
from peripety.engine.backend_protocol import EngineError
from peripety.engine.checks.document_checks import check_duration, check_forbidden_keys
from peripety.engine.checks.story_checks import check_dealt_text
from peripety.engine.lowering import (
    CONDITIONS,
    MAX_SOLUTIONS,
    RESERVED_PREFIX,
    SCHEDULE_PREFIX,
    SECTIONS,
    STORY_OPERATIONS,
    iter_conditions,
    iter_story_effects,
    list_dealt_params,
    list_reserved_paths,
    list_subjects,
)
from peripety.engine.paths import MISSING, format_path, lookup, parse_state_path
from peripety.engine.schema_validation import format_pointer
from peripety.errors import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.engine.paths import Path


# Their conditions are tested when the rule is executed, which a schedule cannot do later.
_IMMEDIATE = frozenset({"move", "promise", "keep", "break"})


def check_lowered_keys(spec: dict[str, Any]) -> Iterator[Finding]:
    """Yield the findings about the lowered keys of a written document."""
    yield from check_forbidden_keys({section: spec[section] for section in SECTIONS if section in spec})
    yield from _check_reserved_names(spec)
    yield from _check_entries(spec)
    for section, condition in (("actions", "preconditions"), ("random_events", "when")):
        for index, rule in enumerate(spec[section]):
            yield from _check_rule(rule, condition, f"/{section}/{index}", spec)
    for section in ("loss_conditions", "win_conditions"):
        for index, end in enumerate(spec.get(section, [])):
            yield from _check_logic(end["when"], f"/{section}/{index}/when", spec)
    deals = {deal["id"]: deal["values"] for deal in spec.get("deal", [])}
    for index, solution in enumerate(spec.get("solutions", [])):
        named = list_dealt_params(solution)
        for name in named:
            if name not in deals:
                yield Finding("UNKNOWN_DEAL", f"/solutions/{index}", f"'{name[:64]}' is not the id of a deal")
        count = prod(len(deals.get(name, ())) for name in named)
        if count > MAX_SOLUTIONS:
            message = (
                f"the {len(named)} deals in its steps have {count} combinations of values, at most"
                f" {MAX_SOLUTIONS} are possible"
            )
            yield Finding("TOO_MANY_DEALS", f"/solutions/{index}", message)
        conditions = {"": solution, **{f"/steps/{at}": step for at, step in enumerate(solution["steps"])}}
        for place, part in conditions.items():
            yield from _check_logic(part.get("when", {}), f"/solutions/{index}{place}/when", spec)


# --- reserved names ---


def _check_reserved_names(spec: dict[str, Any]) -> Iterator[Finding]:
    reserved = [*list_reserved_paths(spec)]
    for name in reserved:
        if lookup(spec["state"], name[1:]) is not MISSING:
            yield _reserved_finding(format_pointer(name), format_path(name))
        for holder in (name[:end] for end in range(2, len(name))):
            value = lookup(spec["state"], holder[1:])
            if value is not MISSING and not isinstance(value, dict):
                message = f"'{format_path(holder)}' must be an object, as '{format_path(name)[:80]}' is added"
                yield Finding("RESERVED_NAME", format_pointer(("state", *holder[1:])), message)
                break
    for place, text, op, given in _iter_writes(spec):
        try:
            path = parse_state_path(text)
        except EngineError:
            continue
        members = given if op == "patch" and isinstance(given, dict) else None
        written: list[Path] = [path] if members is None else [(*path, key) for key in members]
        touched = next((one for one in reserved if any(_overlap(one, each) for each in written)), None)
        if touched:
            yield _reserved_finding(place, format_path(touched))
    for section in ("actions", "random_events"):
        for index, rule in enumerate(spec[section]):
            yield from _check_rule_names(rule, f"/{section}/{index}")


def _reserved_finding(place: str, name: str) -> Finding:
    message = f"'{name[:80]}' belongs to the keys of version 1.1, which alone define and write it"
    return Finding("RESERVED_NAME", place, message)


def _iter_writes(spec: dict[str, Any]) -> Iterator[tuple[str, str, str, Any]]:
    """Yield the place, path, operation and value of whatever may write to the state."""
    for section in ("actions", "random_events"):
        for index, rule in enumerate(spec[section]):
            variants = [
                variant.action for variant in expand_action({"params": {}, "preconditions": {}, **rule})
            ]
            for variant in variants or [rule]:
                for place, effect, _ in iter_story_effects(variant["effects"], f"/{section}/{index}/effects"):
                    if "path" in effect:
                        yield place, effect["path"], effect["op"], effect.get("value")
    for index, entry in enumerate(spec.get("deal", [])):
        yield f"/deal/{index}/path", entry["path"], "set", None
    for index, entry in enumerate(spec.get("narrator_scope", [])):
        yield f"/narrator_scope/{index}/path", entry["path"], "set", None
    for text in spec["negativity_budget"].get("decay_per_turn", {}):
        yield f"/negativity_budget/decay_per_turn{format_pointer([text])}", text, "dec", None
    for text in spec.get("bounds", {}):
        yield f"/bounds{format_pointer([text])}", text, "set", None


def _overlap(one: Path, other: Path) -> bool:
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]


def _check_rule_names(rule: dict[str, Any], place: str) -> Iterator[Finding]:
    for name in rule.get("derives", {}):
        if name.startswith(RESERVED_PREFIX):
            yield _reserved_finding(f"{place}/derives{format_pointer([name])}", name)
    for here, effect, _ in iter_story_effects(rule["effects"], f"{place}/effects"):
        value = effect.get("value")
        if isinstance(value, str) and value.startswith(RESERVED_PREFIX):
            yield _reserved_finding(f"{here}/value", value)
        if effect["op"] == "schedule" and effect["id"].startswith(SCHEDULE_PREFIX):
            yield _reserved_finding(f"{here}/id", effect["id"])


# --- entries ---


def _check_entries(spec: dict[str, Any]) -> Iterator[Finding]:
    entities = {entity["id"] for entity in spec.get("entities", [])}
    for section in ("clues", "statements"):
        for name, entry in spec.get(section, {}).items():
            if isinstance(entry["text"], dict):
                place = f"/{section}{format_pointer([name])}/text"
                yield from check_dealt_text(entry["text"], place, spec)
    yield from _check_statements(spec, entities)
    for name, promise in spec.get("promises", {}).items():
        yield from _check_promise(promise, f"/promises{format_pointer([name])}", entities)
    for name, place in spec.get("places", {}).items():
        for index, to in enumerate(place.get("exits", [])):
            yield from _check_id("places", to, f"/places{format_pointer([name])}/exits/{index}", spec)
    for index, entity in enumerate(spec.get("entities", [])):
        if "place" in entity:
            yield from _check_id("places", entity["place"], f"/entities/{index}/place", spec)


def _check_statements(spec: dict[str, Any], entities: set[str]) -> Iterator[Finding]:
    for name, statement in spec.get("statements", {}).items():
        place = f"/statements{format_pointer([name])}"
        yield from _check_entity(statement["by"], f"{place}/by", entities)
        if "broken_by" in statement:
            yield from _check_id("clues", statement["broken_by"], f"{place}/broken_by", spec)
        yield from _check_logic(statement["true"], f"{place}/true", spec)


def _check_promise(promise: dict[str, Any], place: str, entities: set[str]) -> Iterator[Finding]:
    for key in ("to", "by"):
        if key in promise:
            yield from _check_entity(promise[key], f"{place}/{key}", entities)
    if isinstance(promise["due"], str):
        yield from check_duration(promise["due"], f"{place}/due")
    for index, hearer in enumerate(promise.get("hears", [])):
        yield from _check_entity(hearer["entity"], f"{place}/hears/{index}/entity", entities)
        if isinstance(hearer["after"], str):
            yield from check_duration(hearer["after"], f"{place}/hears/{index}/after")


def _check_entity(name: str, place: str, entities: set[str]) -> Iterator[Finding]:
    if name not in entities:
        yield Finding("UNKNOWN_ENTITY", place, f"unknown entity '{name}'; add it to entities")


def _check_id(section: str, name: str, place: str, spec: dict[str, Any]) -> Iterator[Finding]:
    if name not in spec.get(section, {}):
        code, kind = _name_kind(section)
        known = f", or use one of {', '.join(sorted(spec[section]))[:200]}" if spec.get(section) else ""
        yield Finding(code, place, f"unknown {kind} '{name[:64]}'; add it to {section}{known}")


def _name_kind(section: str) -> tuple[str, str]:
    """Return the code of an unknown id of a section, and the word for its entries."""
    match section:
        case "clues":
            return "UNKNOWN_CLUE", "clue"
        case "statements":
            return "UNKNOWN_STATEMENT", "statement"
        case "promises":
            return "UNKNOWN_PROMISE", "promise"
        case _:
            return "UNKNOWN_PLACE", "place"


# --- rules ---


def _check_rule(rule: dict[str, Any], condition: str, place: str, spec: dict[str, Any]) -> Iterator[Finding]:
    yield from _check_logic(rule[condition], f"{place}/{condition}", spec)
    for name, logic in rule.get("derives", {}).items():
        yield from _check_logic(logic, f"{place}/derives{format_pointer([name])}", spec)
    for here, effect, is_later in iter_story_effects(rule["effects"], f"{place}/effects"):
        op = effect["op"]
        if is_later and (op in _IMMEDIATE or effect.get("once") or "when" in effect):
            key = f"'{op}'" if op in _IMMEDIATE else "once" if op == "schedule" else f"'when' of '{op}'"
            message = f"{key} has a condition, which is not tested inside a schedule; use it outside"
            yield Finding("NOT_SCHEDULABLE", here, message)
        if op == "move":
            yield from _check_move(effect, rule, here, spec)
        elif op in STORY_OPERATIONS:
            key, section = STORY_OPERATIONS[op]
            for name in _list_values(effect[key], rule):
                yield from _check_id(section, name, f"{here}/{key}", spec)
            yield from _check_param(effect[key], rule, f"{here}/{key}")
            yield from _check_logic(effect.get("when", {}), f"{here}/when", spec)


def _check_move(
    effect: dict[str, Any], rule: dict[str, Any], place: str, spec: dict[str, Any]
) -> Iterator[Finding]:
    for to in _list_values(effect["to"], rule):
        yield from _check_id("places", to, f"{place}/to", spec)
    placed = {entity["id"] for entity in spec.get("entities", []) if "place" in entity}
    for name in _list_values(effect["entity"], rule):
        if name not in placed:
            places = ", ".join(sorted(spec.get("places", {})))[:200] or "an id of places"
            message = (
                f"the entity '{name[:64]}' starts nowhere, so it cannot move; give it 'place' in entities:"
                f" {places}"
            )
            yield Finding("UNKNOWN_PLACE", f"{place}/entity", message)
    for key in ("entity", "to"):
        yield from _check_param(effect[key], rule, f"{place}/{key}")


def _check_param(given: str | dict[str, Any], rule: dict[str, Any], place: str) -> Iterator[Finding]:
    if isinstance(given, dict) and not _list_values(given, rule):
        message = f"the parameter '{given['param'][:64]}' is not a string with enum, so it cannot stand here"
        yield Finding("BAD_PARAM", place, message)


def _list_values(given: str | dict[str, Any], rule: dict[str, Any]) -> list[str]:
    """Return the ids that the subject of an effect may have."""
    return list_subjects(given, rule.get("params", {}))


def _check_logic(logic: Any, place: str, spec: dict[str, Any]) -> Iterator[Finding]:
    for operator, name, here in iter_conditions(logic, place):
        if CONDITIONS[operator] in spec:
            yield from _check_id(CONDITIONS[operator], name, f"{here}/{operator}", spec)
