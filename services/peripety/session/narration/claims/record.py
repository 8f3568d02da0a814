"""Record of a turn for its narration: what the audience may know of the state and the events of the turn."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from peripety import engine
from peripety.engine import Status
from peripety.session.events import ActionResolved, Rolled, WorldResolved
from peripety.session.state_facts import read_facts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.engine import Change, RollResult
    from peripety.session.events import Event
    from peripety.session.state_facts import StateFacts
    from peripety.session.visibility import ViewerProjection


@dataclass(frozen=True, slots=True)
class WrongClaim:
    """A claim of the prose that contradicts the record.

    Attributes:
        kind: `amount`, `life`, `presence`, `possession`, `ending` or `action`; `words` for words of the
            program; `secret` for a secret in other words.
        quotation: the sentence.
        expected: the fact of the record, as a sentence.
        is_certain: False if a true sentence may look the same.
    """

    kind: str
    quotation: str
    expected: str
    is_certain: bool = True


@dataclass(frozen=True, slots=True)
class TurnFacts:
    """Facts of a turn that its audience may know.

    Attributes:
        spec: the scenario.
        before: facts of the state before the turn.
        after: facts of the state after it.
        changes: its changes, in order.
        actions: its tried actions, in order.
        rolls: its dice, in order.
        status: the status of the run after it.
        knows_status: True if the narrator knows that status.
        done_before: ids of the actions that were accepted in earlier turns.
        texts: the texts that the audience has been given: clues, statements, log lines, the ending.
        secrets: the texts that it may not know.
        known: further texts that it knows.
    """

    spec: Mapping[str, Any]
    before: StateFacts
    after: StateFacts
    changes: Sequence[Change] = ()
    actions: Sequence[ActionResolved] = ()
    rolls: Sequence[RollResult] = ()
    status: Status = field(default_factory=lambda: Status("ongoing"))
    knows_status: bool = True
    done_before: frozenset[str] = frozenset()
    texts: Sequence[str] = ()
    secrets: Sequence[str] = ()
    known: Sequence[str] = ()

    def values_of(self, path: str) -> list[float]:
        """Return the numbers that a path had in the turn, in order; the last one is the current one."""
        ends = [facts.quantities.get(path) for facts in (self.before, self.after)]
        first, last = ([] if quantity is None else [quantity.value] for quantity in ends)
        steps = [change.after for change in self.changes if change.path == path]
        return [*first, *(float(step) for step in steps if _is_number(step)), *last]

    def holders_of(self, thing: str) -> set[str]:
        """Return the holders that a thing had in the turn."""
        known = {facts.holders.get(thing) for facts in (self.before, self.after)}
        for change in self.changes:
            known.update(value for value in (change.before, change.after) if isinstance(value, str))
        return {holder for holder in known if holder is not None}

    def places_of(self, entity: str) -> set[str]:
        """Return the places of an entity before and after the turn; empty if one of them is unknown.

        An entity that an action of the turn met may have come to the player, whatever its place is.
        """
        if entity in self._met:
            return set()
        places = [facts.places.get(entity) for facts in (self.before, self.after)]
        return {place for place in places if place is not None} if None not in places else set()

    @property
    def _met(self) -> set[str]:
        """The entities that are values of the turn's actions, or made statements in it."""
        accepted = [action for action in self.actions if action.accepted]
        chosen = {value for action in accepted for value in action.params.values() if isinstance(value, str)}
        statements = self.spec.get("statements") or {}
        spoken = (change.path.removeprefix("state.statements.") for change in self.changes)
        made = {statements[name]["by"] for name in spoken if name in statements}
        return (made | (chosen & self.after.names.keys())) - {self.after.you}

    def is_alive(self, entity: str) -> bool | None:
        """Return True if an entity is alive in the whole turn, False if it is dead in it, else None."""
        known = {facts.alive.get(entity) for facts in (self.before, self.after)}
        return known.pop() if len(known) == 1 else None


def turn_facts(
    spec: Mapping[str, Any],
    view: ViewerProjection,
    before: Any,
    after: Any,
    events: Sequence[Event],
    *,
    knows_status: bool = True,
    done_before: frozenset[str] = frozenset(),
    secrets: Sequence[str] = (),
    known: Sequence[str] = (),
) -> TurnFacts:
    """Return the facts of a turn for a viewer.

    Args:
        spec: the scenario.
        view: the view of the audience.
        before: the whole state before the turn.
        after: the whole state after it.
        events: its events; the result of the world's step is one of them.
        knows_status: True if the narrator knows the status of the run after the turn.
        done_before: ids of the actions that were accepted in earlier turns.
        secrets: texts that the audience may not know.
        known: texts that it knows, besides the clues, statements and log lines of the turn.
    """
    shown = view.project_state(after)
    parts = [event for event in events if isinstance(event, ActionResolved | WorldResolved)]
    changes = [change for part in parts for change in part.changes]
    statuses = [part.status for part in parts if isinstance(part, WorldResolved)]
    given = [shown[section] for section in ("clues", "statements") if section in spec]
    ending = statuses[-1] if statuses and knows_status else Status("ongoing")
    told_at_end = [ending.message, engine.read_epilogue(spec.get("epilogues", {}), ending)]
    return TurnFacts(
        spec,
        read_facts(spec, view.project_state(before), view.viewer),
        read_facts(spec, shown, view.viewer),
        view.project_changes(changes),
        [event for event in events if isinstance(event, ActionResolved)],
        [event.roll for event in events if isinstance(event, Rolled)],
        statuses[-1] if statuses else Status("ongoing"),
        knows_status,
        done_before,
        [
            *(text for texts in given for text in texts.values() if isinstance(text, str)),
            *_log_texts(view, parts),
            *(text for text in told_at_end if text),
        ],
        secrets,
        known,
    )


def _log_texts(view: ViewerProjection, parts: Sequence[ActionResolved | WorldResolved]) -> list[str]:
    """Return the log lines of a turn that the audience sees."""
    shown = (view.project_event(part, view.viewer) for part in parts)
    return [
        line.message
        for part in shown
        if isinstance(part, ActionResolved | WorldResolved)
        for line in part.log
    ]


def undo_changes(tree: Any, events: Sequence[Event]) -> Any:
    """Return a state before the changes of a turn.

    Args:
        tree: the state after the turn.
        events: the events of the turn.
    """
    parts = [event for event in events if isinstance(event, ActionResolved | WorldResolved)]
    before = deepcopy(tree)
    for change in reversed([change for part in parts for change in part.changes]):
        *above, last = engine.parse_path(change.path)[1:]
        place = before
        for step in above:
            is_there = step in place if isinstance(place, dict) else _has_index(place, step)
            place = place[step] if is_there else None
        if isinstance(place, dict):
            place.pop(last, None)
            if change.before is not engine.ABSENT:
                place[last] = deepcopy(change.before)
        elif isinstance(place, list) and isinstance(last, int):
            kept = [] if change.before is engine.ABSENT else [deepcopy(change.before)]
            place[last : last + (change.after is not engine.ABSENT)] = kept
    return before


def _has_index(value: Any, step: str | int) -> bool:
    return isinstance(value, list) and isinstance(step, int) and step < len(value)


def _is_number(value: Any) -> bool:
    return value is not engine.ABSENT and isinstance(value, int | float) and not isinstance(value, bool)
