"""Record of a session as one viewer may know it: facts after each turn, and the turns that changed them."""

from __future__ import annotations

import re
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from peripety import engine
from peripety.errors import PeripetyError
from peripety.session.events import (
    Accepted,
    ActionResolved,
    Committed,
    DialogueSpoken,
    NarrativeRetracted,
    Rolled,
    WorldResolved,
)
from peripety.session.narration.claims.english import is_function_word
from peripety.session.state_facts import read_facts, to_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from peripety.engine import Change, RollResult, State, Status
    from peripety.session.events import Event
    from peripety.session.state_facts import StateFacts
    from peripety.session.types import CommittedTurn
    from peripety.session.visibility import ViewerProjection


_WORDS = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """A turn as one viewer may know it.

    Attributes:
        turn: its number.
        input: the player's words.
        actions: its tried actions.
        rolls: its dice.
        event_id: the random event; None for none.
        changes: its changes, in order.
        log: its log lines.
        dialogue: entities and their words, in order.
        narrative: its narration; empty if the viewer has not read it.
        status: the status of the run after it.
    """

    turn: int
    input: str
    actions: tuple[ActionResolved, ...]
    rolls: tuple[RollResult, ...]
    event_id: str | None
    changes: tuple[Change, ...]
    log: tuple[str, ...]
    dialogue: tuple[tuple[str, str], ...]
    narrative: str
    status: Status


@dataclass
class SessionRecord:
    """Record of a session for one viewer.

    Attributes:
        spec: the scenario.
        viewer: the entity whose view this is; None for the public view.
        tree: the visible state now.
        status: the status of the run now.
        legal_actions: ids of the actions that are legal now.
        turns: all turns, oldest first.
    """

    spec: Mapping[str, Any]
    viewer: str | None
    tree: Any
    status: Status
    legal_actions: Sequence[str]
    turns: Sequence[RecordedTurn]
    _facts: dict[int, StateFacts] = field(default_factory=dict)

    @property
    def last_turn(self) -> int:
        """Number of the last turn; 0 before the first."""
        return self.turns[-1].turn if self.turns else 0

    def find_turn(self, number: int) -> RecordedTurn | None:
        """Return a turn, or None if it does not exist."""
        return next((turn for turn in self.turns if turn.turn == number), None)

    def facts_after(self, turn: int) -> StateFacts:
        """Return the facts of the visible state after a turn; 0 for the start."""
        if turn not in self._facts:
            tree = self.tree
            if turn < self.last_turn:
                tree = deepcopy(self.tree)
                for later in reversed([one for one in self.turns if one.turn > turn]):
                    for change in reversed(later.changes):
                        _undo(tree, change)
            self._facts[turn] = read_facts(self.spec, tree, self.viewer)
        return self._facts[turn]

    def place_names(self) -> dict[str, tuple[str, ...]]:
        """Return the names of all places that the viewer has seen, also of those where no entity is now."""
        facts = self.facts_after(self.last_turn)
        paths = {path for (kind, _), path in facts.sources.items() if kind == "place"}
        changes = [change for turn in self.turns for change in turn.changes if change.path in paths]
        left = (change.before for change in changes if isinstance(change.before, str))
        return {place: (to_words(place),) for place in left} | facts.place_names

    def turns_that_changed(self, path: str) -> list[int]:
        """Return the turns in which the value at a path changed, oldest first."""
        return [turn.turn for turn in self.turns if any(_changes_value(one, path) for one in turn.changes)]

    def last_change(self, path: str, turn: int) -> int:
        """Return the last turn up to a given one that changed the value at a path; 0 for the start."""
        return max((one for one in self.turns_that_changed(path) if one <= turn), default=0)


def find_mentions(texts: Iterable[tuple[int, str]], question: str, most: int) -> list[tuple[int, str]]:
    """Return the texts that share most words with a question, the best first, then the newest.

    Words of the grammar do not count, nor does a plural. Texts with at most half of the words of the best
    one are left out.

    Args:
        texts: texts with their turns, oldest first.
        question: the question.
        most: the number of texts to return.
    """
    wanted = _content_words(question)
    scored = [(len(wanted & _content_words(text)), turn, text) for turn, text in texts]
    best = max((score for score, _, _ in scored), default=0)
    found = [one for one in scored if one[0] and 2 * one[0] > best]
    return [(turn, text) for _, turn, text in sorted(found, key=lambda one: one[:2], reverse=True)[:most]]


def _content_words(text: str) -> set[str]:
    words = _WORDS.findall(text.casefold())
    return {word.removesuffix("s") for word in words if len(word) > 2 and not is_function_word(word)}  # noqa: PLR2004


def read_record(
    spec: Mapping[str, Any],
    state: State,
    legal_actions: Sequence[str],
    view: ViewerProjection,
    turns: Iterable[CommittedTurn],
) -> SessionRecord:
    """Return the record of a session for one viewer.

    Args:
        spec: the scenario.
        state: the state after the last turn.
        legal_actions: ids of the actions that are legal in it.
        view: the view.
        turns: all committed turns, oldest first.
    """
    seen = tuple(_project(view, turn) for turn in turns)
    return SessionRecord(
        spec, view.viewer, view.project_state(state.tree()), state.status, legal_actions, seen
    )


def _project(view: ViewerProjection, turn: CommittedTurn) -> RecordedTurn:
    events = [event for event in (view.project_event(one, turn.pov) for one in turn.events) if event]
    last = next(event for event in events if isinstance(event, Committed))
    return RecordedTurn(
        turn.turn,
        next((event.input for event in events if isinstance(event, Accepted)), ""),
        tuple(event for event in events if isinstance(event, ActionResolved)),
        tuple(event.roll for event in events if isinstance(event, Rolled)),
        next((event.event_id for event in events if isinstance(event, WorldResolved)), None),
        last.changes,
        tuple(
            line.message
            for one in events
            if isinstance(one, ActionResolved | WorldResolved)
            for line in one.log
        ),
        tuple(_spoken(events)),
        last.narrative,
        last.status,
    )


def _spoken(events: Sequence[Event]) -> Iterator[tuple[str, str]]:
    retracted = [place for place, event in enumerate(events) if isinstance(event, NarrativeRetracted)]
    for event in events[retracted[-1] if retracted else 0 :]:
        if isinstance(event, DialogueSpoken):
            yield event.entity_id, event.utterance


def _undo(tree: Any, change: Change) -> None:
    """Set the value of a change back in a tree; a place that is not visible is left alone."""
    *parents, last = engine.parse_path(change.path)[1:] or (None,)
    holder = tree
    try:
        for step in parents:
            holder = holder[step]
        if isinstance(holder, list) and isinstance(last, int):
            if change.before is engine.ABSENT:
                del holder[last]
            elif change.after is engine.ABSENT:
                holder.insert(last, deepcopy(change.before))
            else:
                holder[last] = deepcopy(change.before)
        elif change.before is engine.ABSENT:
            holder.pop(last, None)
        else:
            holder[last] = deepcopy(change.before)
    except (LookupError, TypeError, AttributeError):
        return


def _changes_value(change: Change, path: str) -> bool:
    """Return True if a change alters the value at a path, or a part of it."""
    try:
        wanted, changed = engine.parse_path(path), engine.parse_path(change.path)
    except PeripetyError:
        return False
    if changed[: len(wanted)] == wanted:
        return bool(change.before != change.after)
    if wanted[: len(changed)] != changed:
        return False
    below = wanted[len(changed) :]
    return bool(_value_at(change.before, below) != _value_at(change.after, below))


def _value_at(value: Any, steps: Iterable[str | int]) -> Any:
    for step in steps:
        try:
            value = value[step]
        except (LookupError, TypeError):
            return None
    return value
