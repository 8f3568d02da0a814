"""Stories: the part of a scenario that the reader of a session may know, for display.

A specification has rules, hidden values and solutions. A page that shows a game needs names and texts only,
and a reader must get no more than its point of view allows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.engine import View, Visibility, variable_to_path
from peripety.errors import PeripetyError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_OLD_VERSION = "1.0"
_PUBLIC_TEXTS = ("description", "manner")


def to_story(spec: Mapping[str, Any], viewer: str, status: Mapping[str, Any]) -> dict[str, Any]:
    """Return names and texts of a scenario for one viewer.

    Args:
        spec: the specification.
        viewer: id of the entity whose point of view it is; empty for the public part.
        status: status of the run; the epilogue is part of the story only after the end.
    """
    view = View(Visibility(spec), viewer or None)
    premise = spec.get("premise", "")
    story: dict[str, Any] = {
        "name": spec["name"],
        "premise": premise if isinstance(premise, str) else premise["text"],
        "opening": spec.get("opening", ""),
        "turn_length": spec.get("clock", {}).get("turn", ""),
        "horizon": spec.get("horizon", 0),
        "entities": [_to_person(spec, entity, viewer) for entity in spec.get("entities", ())],
        "places": {
            place: {key: value[key] for key in ("name", "description") if key in value}
            for place, value in spec.get("places", {}).items()
        },
        "labels": _visible(view, spec.get("labels", {})),
        "bounds": _visible(view, spec.get("bounds", {})),
        "actions": {action["id"]: action.get("name", action["id"]) for action in spec["actions"]},
        "events": {event["id"]: event.get("name", event["id"]) for event in spec["random_events"]},
        "endings": {
            condition["id"]: condition.get("message", "")
            for condition in (*spec["loss_conditions"], *spec.get("win_conditions", ()))
        },
    }
    if status.get("kind", "ongoing") != "ongoing":
        story["ending"] = _to_ending(spec, view, status)
    return story


def _to_person(spec: Mapping[str, Any], entity: Mapping[str, Any], viewer: str) -> dict[str, Any]:
    # Before version 1.1, a description has no defined audience.
    is_public = spec["spec_version"] != _OLD_VERSION or entity["id"] == viewer
    texts = _PUBLIC_TEXTS if is_public else ()
    person = {key: entity[key] for key in ("id", "name", "kind", *texts) if key in entity}
    return person | {"playable": entity.get("playable", False)}


def _visible(view: View, by_path: Mapping[str, Any]) -> dict[str, Any]:
    return {path: value for path, value in by_path.items() if view.can_see(path)}


def _to_ending(spec: Mapping[str, Any], view: View, status: Mapping[str, Any]) -> dict[str, Any]:
    """Return the epilogue of an ending, and the visible paths that its condition reads."""
    conditions = (*spec["loss_conditions"], *spec.get("win_conditions", ()))
    rules = [one["when"] for one in conditions if one["id"] == status.get("condition")]
    paths = dict.fromkeys(path for rule in rules for path in _paths_read(rule) if view.can_see(path))
    return {"epilogue": status.get("epilogue", ""), "paths": list(paths)}


def _paths_read(rule: Any) -> Iterator[str]:
    if isinstance(rule, dict):
        for operator, operands in rule.items():
            if operator == "var":
                yield from _state_path(operands)
            else:
                yield from _paths_read(operands)
    elif isinstance(rule, list):
        for part in rule:
            yield from _paths_read(part)


def _state_path(operand: Any) -> Iterator[str]:
    name = operand[0] if isinstance(operand, list) and operand else operand
    if not isinstance(name, str) or not name.startswith("state"):
        return
    try:
        yield variable_to_path(name)
    except PeripetyError:
        return
