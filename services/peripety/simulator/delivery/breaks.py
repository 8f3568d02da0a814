"""Connection faults: each kind is a function that changes a plan of frames.

Faults count chunks with content: frames with text, reasoning or arguments. An answer that is not streamed is
sent in pieces if it is to break; each piece counts as such a chunk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from peripety.simulator.delivery.plan import Ending, Plan, Step
from peripety.simulator.model import Frame, Tag

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from peripety.simulator.scenario.model import Failure

__all__ = ["broken", "chunk", "interrupted"]

T = TypeVar("T")

_CONTENT = frozenset({Tag.TEXT, Tag.REASONING, Tag.ARGUMENTS})


def broken(plan: Plan[Frame[T]], failure: Failure) -> Plan[Frame[T]]:
    """Return the plan changed by a fault; the same plan if the fault does not affect delivery."""
    change = _BREAKS.get(failure.type)
    return plan if change is None else change(plan, failure.settings)


def chunk(plan: Plan[Frame[T]], number: int) -> int:
    """Return the index of a content chunk, counted from 0; of the last one if there are fewer."""
    places = _chunks(plan)
    return places[min(number, len(places) - 1)]


def interrupted(plan: Plan[Frame[T]], chunks: int, last: Callable[[Sequence[Frame[T]]], T]) -> Plan[Frame[T]]:
    """End a plan with a final frame after a number of chunks.

    Args:
        plan: the plan.
        chunks: number of chunks that still leave.
        last: returns the final frame from the frames that have left.
    """
    kept = _end(plan, _after(plan, chunks), Ending.CLEAN)
    frame = Frame(last([step.data for step in kept.steps]), Tag.END)
    return Plan([*kept.steps, Step(kept.ends_ms, frame)], Ending.CLEAN, kept.ends_ms)


def _chunks(plan: Plan[Frame[T]]) -> list[int]:
    places = [place for place, step in enumerate(plan.steps) if step.data.tag in _CONTENT]
    return places or [place for place, step in enumerate(plan.steps) if step.data.tag is not Tag.NOISE]


def _after(plan: Plan[Frame[T]], chunks: int) -> int:
    """Return the index after a number of chunks: the next chunk, or the frame after the last one."""
    places = _chunks(plan)
    return places[chunks] if chunks < len(places) else min(places[-1] + 1, len(plan.steps) - 1)


def _end(plan: Plan[Frame[T]], place: int, ending: Ending) -> Plan[Frame[T]]:
    return Plan(plan.steps[:place], ending, plan.steps[place].at_ms)


def _delay(plan: Plan[Frame[T]], place: int, delay_ms: float) -> Plan[Frame[T]]:
    late = [Step(step.at_ms + delay_ms, step.data) for step in plan.steps[place:]]
    return Plan([*plan.steps[:place], *late], plan.ending, plan.ends_ms + delay_ms)


# ---- nothing of an answer arrives


def _network_unreachable(_plan: Plan[Frame[T]], _settings: Mapping[str, Any]) -> Plan[Frame[T]]:
    return Plan((), Ending.RESET)


def _connection_timeout(_plan: Plan[Frame[T]], settings: Mapping[str, Any]) -> Plan[Frame[T]]:
    return Plan((), Ending.CLOSED, settings["after_ms"])


def _hang(_plan: Plan[Frame[T]], _settings: Mapping[str, Any]) -> Plan[Frame[T]]:
    return Plan((), Ending.HANG)


# ---- it ends before its end


def _partial_response(plan: Plan[Frame[T]], _settings: Mapping[str, Any]) -> Plan[Frame[T]]:
    return _end(plan, _after(plan, len(plan.steps)), Ending.CLOSED)


def _stream_cut(plan: Plan[Frame[T]], settings: Mapping[str, Any]) -> Plan[Frame[T]]:
    return _end(plan, _after(plan, settings["after_chunks"]), Ending.CLOSED)


def _reset_at_token(plan: Plan[Frame[T]], settings: Mapping[str, Any]) -> Plan[Frame[T]]:
    tokens = 0
    for place, step in enumerate(plan.steps):
        tokens += step.data.tokens
        if tokens > settings["token"]:
            return _end(plan, place, Ending.RESET)
    return _end(plan, len(plan.steps) - 1, Ending.RESET)


def _missing_end(plan: Plan[Frame[T]], _settings: Mapping[str, Any]) -> Plan[Frame[T]]:
    for tag in (Tag.END, Tag.STOP):
        kept = [step for step in plan.steps if step.data.tag is not tag]
        if len(kept) < len(plan.steps):
            return plan.replaced(kept)
    return plan


# ---- it is late


def _stall(plan: Plan[Frame[T]], settings: Mapping[str, Any]) -> Plan[Frame[T]]:
    return _delay(plan, _after(plan, settings["after_chunks"]), settings["for_ms"])


def _slow_drip(plan: Plan[Frame[T]], settings: Mapping[str, Any]) -> Plan[Frame[T]]:
    chunks = frozenset(_chunks(plan)[1:])
    steps: list[Step[Frame[T]]] = []
    latest = 0.0
    for place, step in enumerate(plan.steps):
        latest = max(step.at_ms, latest + (settings["ms_per_chunk"] if place in chunks else 0))
        steps.append(Step(latest, step.data))
    return Plan(steps, plan.ending, max(plan.ends_ms, latest))


def _late_usage(plan: Plan[Frame[T]], settings: Mapping[str, Any]) -> Plan[Frame[T]]:
    tags = [step.data.tag for step in plan.steps]
    place = next((tags.index(tag) for tag in (Tag.USAGE, Tag.STOP, Tag.END) if tag in tags), len(tags) - 1)
    return _delay(plan, place, settings["delay_ms"])


# ---- its chunks are not what was sent


def _duplicate_chunk(plan: Plan[Frame[T]], settings: Mapping[str, Any]) -> Plan[Frame[T]]:
    place = chunk(plan, settings["chunk"])
    return plan.replaced([*plan.steps[: place + 1], *plan.steps[place:]])


def _missing_chunk(plan: Plan[Frame[T]], settings: Mapping[str, Any]) -> Plan[Frame[T]]:
    place = chunk(plan, settings["chunk"])
    return plan.replaced([*plan.steps[:place], *plan.steps[place + 1 :]])


def _reordered_chunks(plan: Plan[Frame[T]], settings: Mapping[str, Any]) -> Plan[Frame[T]]:
    steps = list(plan.steps)
    place = chunk(plan, settings["chunk"])
    following = (at for at in range(place + 1, len(steps)) if steps[at].data.tag is not Tag.NOISE)
    other = next(following, max(place - 1, 0))
    first, second = steps[place], steps[other]
    steps[place], steps[other] = Step(first.at_ms, second.data), Step(second.at_ms, first.data)
    return plan.replaced(steps)


_BREAKS: Mapping[str, Callable[[Plan[Frame[Any]], Mapping[str, Any]], Plan[Frame[Any]]]] = {
    "network_unreachable": _network_unreachable,
    "connection_timeout": _connection_timeout,
    "hang": _hang,
    "connection_reset": _network_unreachable,
    "partial_response": _partial_response,
    "stream_cut": _stream_cut,
    "reset_at_token": _reset_at_token,
    "missing_end": _missing_end,
    "stall": _stall,
    "slow_drip": _slow_drip,
    "late_usage": _late_usage,
    "duplicate_chunk": _duplicate_chunk,
    "missing_chunk": _missing_chunk,
    "reordered_chunks": _reordered_chunks,
}
