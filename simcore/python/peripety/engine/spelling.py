"""The earlier spelling of a scenario: `{"jsonlogic": …}` around expressions, and `valueObject` in `patch`."""

from __future__ import annotations

from typing import Any

from peripety.engine._reference.jsonlogic_operators import OPERATORS

# A document without these words has the canonical spelling.
EARLIER_WORDS = (b'"jsonlogic"', b'"valueObject"')
_CONDITIONS = (
    ("actions", "preconditions"),
    ("random_events", "when"),
    ("loss_conditions", "when"),
    ("win_conditions", "when"),
)


def to_canonical_spelling(spec: Any) -> Any:
    """Return a parsed scenario in the canonical spelling; parts that are not changed are shared.

    Nothing that is valid in the canonical spelling changes: a derived value named `jsonlogic` remains one.
    """
    if not isinstance(spec, dict):
        return spec
    changed = dict(spec)
    for section, key in _CONDITIONS:
        if isinstance(spec.get(section), list):
            changed[section] = [_to_canonical_rule(rule, key) for rule in spec[section]]
    return changed


def _to_canonical_rule(rule: Any, condition: str) -> Any:
    if not isinstance(rule, dict):
        return rule
    changed = dict(rule)
    if condition in rule:
        changed[condition] = _unwrap(rule[condition])
    derives = _unwrap(rule.get("derives"))
    # Of one operation, the wrapper is the name of a derived value.
    if derives is not rule.get("derives") and not (len(derives) < 2 and derives.keys() <= OPERATORS.keys()):  # noqa: PLR2004
        changed["derives"] = {name: _unwrap(expression) for name, expression in derives.items()}
    if isinstance(rule.get("effects"), list):
        changed["effects"] = [_to_canonical_effect(effect) for effect in rule["effects"]]
    return changed


def _unwrap(logic: Any) -> Any:
    """Return the expression inside `{"jsonlogic": …}`."""
    if isinstance(logic, dict) and logic.keys() == {"jsonlogic"} and isinstance(logic["jsonlogic"], dict):
        return logic["jsonlogic"]
    return logic


def _to_canonical_effect(effect: Any) -> Any:
    if not isinstance(effect, dict):
        return effect
    if effect.get("op") == "patch" and "valueObject" in effect and "value" not in effect:
        return {"value" if key == "valueObject" else key: value for key, value in effect.items()}
    if isinstance(effect.get("effects"), list):
        return {**effect, "effects": [_to_canonical_effect(later) for later in effect["effects"]]}
    return effect
