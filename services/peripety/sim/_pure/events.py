"""Random events: eligibility, the draw, and events that last several turns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.sim._core import CoreError
from peripety.sim._pure.execution import apply_rule, holds
from peripety.sim._pure.rng import draw, stream_key, unit

if TYPE_CHECKING:
    from peripety.sim._pure.effects import Record
    from peripety.sim._pure.state import State

__all__ = ["EVENT_STREAM", "happen", "happen_alone"]

EVENT_STREAM = "event"
_EVENT_KEY = stream_key(EVENT_STREAM)


def happen(state: State, record: Record) -> str | None:
    """Draw at most one random event, then apply the lasting ones; return the id of the drawn event."""
    now = state.turn + 1
    continuing = _continuing(state)
    fired = _draw_event(state, record)
    begun = _begin(state, fired, record) if fired is not None else None
    for entry in continuing:
        index = next(i for i, event in enumerate(state.rules.events) if event["id"] == entry["id"])
        _apply_event(state, index, record)
    state.lasting = [entry for entry in [*continuing, *([begun] if begun else [])] if entry["until"] > now]
    return None if fired is None else state.rules.events[fired]["id"]


def happen_alone(state: State, index: int, record: Record) -> bool:
    """Apply one event as if it were drawn; return True if it was eligible and succeeded."""
    return _is_eligible(state, index, record) and _apply_event(state, index, record) is None


def _continuing(state: State) -> list[dict[str, Any]]:
    """Return the events that last through this turn."""
    return [entry for entry in state.lasting if entry["until"] > state.turn]


def _draw_event(state: State, record: Record) -> int | None:
    eligible = [index for index in range(len(state.rules.events)) if _is_eligible(state, index, record)]
    if not eligible:
        return None
    total = 0.0
    for index in eligible:
        total += state.rules.events[index]["weight"]
    value = draw(state.seed, _EVENT_KEY, state.turn + 1, 0)
    record.draws.append(
        {"stream": EVENT_STREAM, "turn": float(state.turn + 1), "index": 0.0, "value": f"{value:016x}"}
    )
    threshold = unit(value) if total <= 1 else unit(value) * total
    cumulative = 0.0
    for index in eligible:
        cumulative += state.rules.events[index]["weight"]
        if threshold < cumulative:
            return index
    return None


def _is_eligible(state: State, index: int, record: Record) -> bool:
    """Return True if an event can be drawn; one whose condition fails to evaluate cannot."""
    event = state.rules.events[index]
    if any(entry["id"] == event["id"] for entry in _continuing(state)):
        return False
    try:
        return holds(state, event["when"], {}, record)
    except CoreError as error:
        record.fail(error, f"/random_events/{index}/when")
        return False


def _begin(state: State, index: int, record: Record) -> dict[str, Any] | None:
    """Apply a drawn event; return its entry for later turns, or None if it failed."""
    failure = _apply_event(state, index, record)
    last = state.turn + state.rules.event_turns[index]
    return None if failure else {"id": state.rules.events[index]["id"], "until": float(last)}


def _apply_event(state: State, index: int, record: Record) -> dict[str, str] | None:
    event = state.rules.events[index]
    return apply_rule(state, event, f"/random_events/{index}", f"event:{event['id']}", record, {})
