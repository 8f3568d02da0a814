"""Who may see what: the one way from the state to anything that leaves the engine.

Every path has an audience. A label of the scenario gives it for a path and all below it, a deeper label
overrules, and without labels everything is public except `state.private.<entity>`, which is that entity's
alone, and `state.hidden`, which is nobody's. Prompts, streams, reads and errors hold what `View` lets
through; the rest is not in them.

Public by nature are the rules themselves and what is literal in them: which actions were tried and are
legal, which event happened, log lines, the messages of end conditions. Of a rule that failed, its code and
place are public; the engine's sentence may tell what stands in the state and is replaced.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from peripety import sim
from peripety.errors import FieldViolation, InvalidArgumentError, NotFoundError
from peripety.sessions.events import (
    Accepted,
    ActionResolved,
    Committed,
    Dialogue,
    NarrativeChunk,
    NarrativeRetracted,
    RuleFailed,
    WorldResolved,
)
from peripety.sim import ABSENT, RuleError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from peripety.sessions.events import Event
    from peripety.sim import Change

__all__ = ["View", "Visibility"]

_NOBODY: frozenset[str] = frozenset()
# What these say comes from the request, the scenario or fixed limits, never from the state.
_TELLING_NOTHING = frozenset({"ILLEGAL_PARAM", "PRECONDITION_FAILED", "STATE_LIMIT", "ACTIONS_REJECTED"})
_FAILURE = "the rule could not be carried out: {}"
_Failure = TypeVar("_Failure", RuleError, RuleFailed)


@dataclass(slots=True)
class _Label:
    """A step on the way to labelled paths; `audience` is set where a label stands, None meaning everyone."""

    labelled: bool = False
    audience: frozenset[str] | None = None
    below: dict[str | int, _Label] = field(default_factory=dict)

    def set(self, path: Iterable[str | int], audience: frozenset[str] | None) -> None:
        label = self
        for segment in path:
            label = label.below.setdefault(segment, _Label())
        label.labelled, label.audience = True, audience


@dataclass(frozen=True, slots=True)
class _Place:
    """Somewhere in the state: whether a viewer may see what is there, and the labels further down."""

    visible: bool
    label: _Label | None


class Visibility:
    """The labels of a scenario."""

    def __init__(self, spec: Mapping[str, Any]) -> None:
        self._entities = {entity["id"]: entity for entity in spec.get("entities", ())}
        self._root = _Label()
        self._root.set(("hidden",), _NOBODY)
        self._root.set(("private",), _NOBODY)
        for entity in self._entities:
            self._root.set(("private", entity), frozenset({entity}))
        for rule in spec.get("visibility", ()):
            self._root.set(sim.parse_path(rule["path"])[1:], _audience(rule["to"]))

    def view(self, viewer: str | None) -> View:
        """What an entity may see; None for the public part.

        Raises:
            NotFoundError: there is no such entity.
            InvalidArgumentError: it is not a playable one.
        """
        if viewer is not None:
            entity = self._entities.get(viewer)
            if entity is None:
                raise NotFoundError(
                    f".pov_entity_id: the scenario has no entity '{viewer[:64]}'; {self._choices()}",
                    code="UNKNOWN_ENTITY",
                )
            if not entity.get("playable"):
                reason = f"'{viewer}' cannot be played; {self._choices()}"
                raise InvalidArgumentError(
                    f".pov_entity_id: {reason}",
                    code="NOT_PLAYABLE",
                    violations=[FieldViolation(".pov_entity_id", reason)],
                )
        return View(self._root, viewer)

    def _choices(self) -> str:
        playable = [name for name, entity in self._entities.items() if entity.get("playable")][:8]
        listed = f"use one of {', '.join(playable)}, or leave" if playable else "leave"
        return f"{listed} the field empty for the public part"


class View:
    """What one viewer may see of a scenario's sessions."""

    def __init__(self, labels: _Label, viewer: str | None) -> None:
        self.viewer = viewer
        self._root = self._enter(_Place(visible=True, label=None), labels)

    def state(self, tree: Any) -> dict[str, Any]:
        """The part of a state tree that the viewer may see."""
        seen = self._cut(tree, self._root)
        return seen if isinstance(seen, dict) else {}

    def changes(self, changes: Iterable[Change]) -> tuple[Change, ...]:
        """The changes that the viewer may see, each cut to what they may see of its values."""
        return tuple(seen for change in changes if (seen := self._change(change)) is not None)

    def failures(self, errors: Iterable[_Failure]) -> tuple[_Failure, ...]:
        """Failures of rules: codes, places, and of the engine's words only those that anyone may read."""
        return tuple(
            error if error.code in _TELLING_NOTHING else replace(error, message=_FAILURE.format(error.code))
            for error in errors
        )

    def hears(self, audience: str | None) -> bool:
        """Whether prose that was narrated for `audience` (None: for everyone) may reach the viewer."""
        return audience is None or audience == self.viewer

    def event(self, event: Event, audience: str | None) -> Event | None:
        """What the viewer may see of an event of a turn narrated for `audience`; None for nothing of it."""
        hears = self.hears(audience)
        seen: Event | None = event
        match event:
            case NarrativeChunk() | NarrativeRetracted() | Dialogue():
                seen = event if hears else None
            case Accepted():
                seen = replace(event, input=event.input if hears else "")
            case ActionResolved():
                seen = replace(
                    event, changes=self.changes(event.changes), reasons=self.failures(event.reasons)
                )
            case WorldResolved():
                seen = replace(event, changes=self.changes(event.changes), errors=self.failures(event.errors))
            case RuleFailed():
                (seen,) = self.failures([event])
            case Committed():
                narrative = event.narrative if hears else ""
                seen = replace(event, changes=self.changes(event.changes), narrative=narrative)
        return seen

    def _change(self, change: Change) -> Change | None:
        place = self._root
        for segment in sim.parse_path(change.path)[1:]:
            place = self._enter(place, place.label.below.get(segment) if place.label else None)
        before, after = self._cut(change.before, place), self._cut(change.after, place)
        if before is ABSENT and after is ABSENT:
            return None
        was_cut = (before, after) != (change.before, change.after)
        return None if was_cut and before == after else replace(change, before=before, after=after)

    def _enter(self, holder: _Place, label: _Label | None) -> _Place:
        if label is None or not label.labelled:
            return _Place(holder.visible, label)
        return _Place(label.audience is None or self.viewer in label.audience, label)

    def _cut(self, value: Any, place: _Place) -> Any:
        """What may be seen of a value: itself, a part of it, or `ABSENT`."""
        if place.label is None or not place.label.below or not isinstance(value, dict | list):
            return value if place.visible else ABSENT
        below = place.label.below
        if isinstance(value, dict):
            seen = {key: self._cut(item, self._enter(place, below.get(key))) for key, item in value.items()}
            kept = {key: item for key, item in seen.items() if item is not ABSENT}
            return kept if kept or place.visible else ABSENT
        items = [self._cut(item, self._enter(place, below.get(index))) for index, item in enumerate(value)]
        # The other elements keep their places, so that a path means the same to everyone.
        shown = any(item is not ABSENT for item in items)
        return [None if item is ABSENT else item for item in items] if shown or place.visible else ABSENT


def _audience(to: str | list[str]) -> frozenset[str] | None:
    if isinstance(to, list):
        return frozenset(to)
    return None if to == "public" else _NOBODY
