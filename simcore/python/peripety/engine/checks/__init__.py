"""Static checks of a scenario, beyond its JSON Schema.

Each function receives parts of a document that is valid against the schema, and yields findings in document
order.

A document that violates its schema is checked as well, so that all findings appear in one round: the parts
with violations are replaced by something neutral, and nothing is reported on them.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from peripety.engine.checks.craft_checks import check_craft
from peripety.engine.checks.document_checks import StateModel, check_document, is_state_path
from peripety.engine.checks.lowered_key_checks import check_lowered_keys
from peripety.engine.checks.rule_checks import check_rules
from peripety.engine.checks.secrecy_checks import check_secrecy
from peripety.engine.checks.story_checks import check_story
from peripety.engine.lowering import lower
from peripety.engine.schema_validation import (
    MAX_FINDINGS,
    format_pointer,
    parse_pointer,
    validate_against_schema,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.errors import Finding


def check_spec(spec: dict[str, Any]) -> list[Finding]:
    """Return the findings of a scenario that is valid against the schema, at most 50."""
    lowering = lower(spec)
    lowered = lowering.spec
    world = StateModel(lowered)
    found = chain(check_document(lowered), check_rules(lowered, world), check_story(lowered, world))
    if not lowering.is_identity:
        written = (replace(finding, path=lowering.to_written(finding.path)) for finding in found)
        found = chain(dict.fromkeys(chain(check_lowered_keys(spec), written)))
    if spec["spec_version"] == "1.1":
        found = chain(found, check_secrecy(spec), check_craft(spec))
    return list(islice(found, MAX_FINDINGS))


_ENDINGS = frozenset({"loss_conditions", "win_conditions"})
_RULES = frozenset({"actions", "random_events"}) | _ENDINGS
_REQUIRED = frozenset({"spec_version", "id", "name", "seed", "state"}) | _RULES
_LOGIC = frozenset({"preconditions", "when"})
_ROUNDS = 3


def check_despite_schema(
    spec: Any,
    schema: Mapping[str, Any],
    violations: Sequence[Finding],
) -> list[Finding]:
    """Return the findings of the parts of a document that do not violate its schema.

    Args:
        spec: the document.
        schema: its schema.
        violations: all violations of the schema.
    """
    if not isinstance(spec, dict) or len(violations) >= MAX_FINDINGS:
        return []
    sound, replaced = deepcopy(spec), set[str]()
    for number in range(_ROUNDS):
        for violation in violations:
            place = _neutralize(sound, parse_pointer(violation.path), is_thorough=number > 0)
            if place is None:
                return []
            replaced.add(format_pointer(place))
        violations = validate_against_schema(schema, sound)
        if not violations:
            break
    if violations:
        return []
    return [
        finding
        for finding in check_spec(sound)
        if not any(finding.path == path or finding.path.startswith(f"{path}/") for path in replaced)
    ]


def _neutralize(spec: dict[str, Any], place: Sequence[str], *, is_thorough: bool) -> Sequence[str] | None:
    """Replace the smallest part around a violation; return its place, or None if it cannot be replaced."""
    if len(place) > 1 and place[0] in _RULES and isinstance(spec.get(place[0]), list):
        return _neutralize_rule(spec, place, is_thorough=is_thorough)
    if place and place[0] == "negativity_budget":
        spec[place[0]] = {"min_fail_rate": 0.5}
        return place[:1]
    if place and place[0] in spec and place[0] not in _REQUIRED | {"entities"}:
        del spec[place[0]]
        return place[:1]
    return None


def _neutralize_rule(
    spec: dict[str, Any], place: Sequence[str], *, is_thorough: bool
) -> Sequence[str] | None:
    section, index = place[0], int(place[1])
    entries = spec[section]
    if index >= len(entries):
        return None
    entry = entries[index]
    effects = entry.get("effects") if isinstance(entry, dict) else None
    if not is_thorough and len(place) > 3 and place[2] == "effects" and isinstance(effects, list):  # noqa: PLR2004 - the effect itself
        number = int(place[3])
        # An earlier violation of the same list may have replaced it.
        if number < len(effects):
            effects[number] = _neutral_effect(effects[number])
        return place[:4]
    if not is_thorough and len(place) > 2 and place[2] in _LOGIC and isinstance(entry, dict):  # noqa: PLR2004 - a member
        entry[place[2]] = {}
        return place[:3]
    entries[index] = _neutral_rule(section, index, entry if isinstance(entry, dict) else {})
    return place[:2]


def _neutral_effect(effect: Any) -> dict[str, Any]:
    """Return an effect that also creates the path of another one."""
    path = effect.get("path") if isinstance(effect, dict) else None
    if isinstance(path, str) and "." in path and is_state_path(path):
        return {"op": "set", "path": path, "value": 0}
    return {"op": "addlog", "message": "-"}


def _neutral_rule(section: str, index: int, entry: dict[str, Any]) -> dict[str, Any]:
    """Return a rule without effect and with the id of another one."""
    own_id = entry.get("id")
    rule: dict[str, Any] = {
        "id": own_id if isinstance(own_id, str) and own_id else f"neutral.{section}.{index}"
    }
    if section in _ENDINGS:
        return {**rule, "when": {}}
    if section == "actions":
        return {**rule, "params": {}, "preconditions": {}, "effects": []}
    return {**rule, "weight": 0.1, "when": {}, "effects": []}
