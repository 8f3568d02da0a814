"""In-process delivery: the events of an answer, planned like the frames of a wire."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from peripety.simulator.delivery.bodies import page
from peripety.simulator.delivery.breaks import broken, interrupted
from peripety.simulator.delivery.plan import Ending, Plan, Step, paced
from peripety.simulator.failures import embedded
from peripety.simulator.model import Frame, Reasoning, Refusal, Tag, Text
from peripety.simulator.truth.tokens import count

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from peripety.simulator.delivery.plan import Manner
    from peripety.simulator.model import Part, Reply, Stop, Usage
    from peripety.simulator.scenario.model import Failure

__all__ = [
    "Event",
    "Finished",
    "InterruptedAnswerError",
    "ReasoningDelta",
    "RefusalDelta",
    "TextDelta",
    "ToolCallDelta",
    "UnreadableAnswerError",
    "gather",
    "planned",
    "play",
]

_ENDS = {
    Ending.CLOSED: "the connection was closed before the answer was complete",
    Ending.RESET: "the connection was reset",
    Ending.HANG: "the connection stays open without further data",
}


class InterruptedAnswerError(ConnectionError):
    """The connection ended before the answer was complete."""


class UnreadableAnswerError(ValueError):
    """The received bytes are not a valid answer.

    Attributes:
        body: the received bytes.
    """

    def __init__(self, body: str) -> None:
        super().__init__(f"the body is not an answer: {body[:80]!r}")
        self.body = body


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of prose."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """A piece of reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class RefusalDelta:
    """A piece of a refusal."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """A piece of the arguments of a tool call. The pieces with the same id, joined, are JSON."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Finished:
    """The end of an answer: stop reason and usage. A fault may withhold the usage (None)."""

    stop: Stop
    usage: Usage | None


Event = TextDelta | ReasoningDelta | RefusalDelta | ToolCallDelta | Finished


@dataclass(frozen=True, slots=True)
class _Raised:
    """An error in the place of an event."""

    error: Exception


def planned(reply: Reply, manner: Manner) -> Plan[Event | _Raised]:
    """Return the delivery plan of the events of an answer."""
    failure = manner.failure
    told = failure is None or failure.type != "missing_usage"
    plan = paced(list(_frames(reply, reply.usage if told else None)), manner)
    if failure is not None:
        plan = broken(_spoilt(plan, failure), failure)
    return Plan([Step(step.at_ms, step.data.data) for step in plan.steps], plan.ending, plan.ends_ms)


async def play(plan: Plan[Event | _Raised]) -> AsyncIterator[Event]:
    """Yield the events of a plan, each at its time.

    Raises:
        ApiError: an error arrives inside the answer.
        UnreadableAnswerError: the received bytes are not a valid answer.
        InterruptedAnswerError: the answer ends before it is complete.
    """
    loop = asyncio.get_running_loop()
    begin = loop.time()
    for at_ms, event in plan.steps:
        await asyncio.sleep(begin + at_ms / 1000 - loop.time())
        yield _arrived(event)
    await asyncio.sleep(begin + plan.ends_ms / 1000 - loop.time())
    if plan.ending is Ending.HANG:
        await asyncio.Event().wait()
    _check_end(plan.ending)


def gather(plan: Plan[Event | _Raised]) -> list[Event]:
    """Return the events of a plan without waiting. Raises the errors of `play`, and never hangs."""
    events = [_arrived(event) for _, event in plan.steps]
    _check_end(plan.ending)
    return events


def _arrived(event: Event | _Raised) -> Event:
    if isinstance(event, _Raised):
        raise event.error
    return event


def _check_end(ending: Ending) -> None:
    if ending is not Ending.CLEAN:
        raise InterruptedAnswerError(_ENDS[ending])


def _frames(reply: Reply, usage: Usage | None) -> Iterator[Frame[Event | _Raised]]:
    for part in reply.parts:
        for piece in part.pieces:
            event, tag = _event(part, piece)
            yield Frame(event, tag, count(piece))
    yield Frame(Finished(reply.stop, usage), Tag.STOP)


def _event(part: Part, piece: str) -> tuple[Event, Tag]:
    match part:
        case Text():
            return TextDelta(piece), Tag.TEXT
        case Reasoning():
            return ReasoningDelta(piece), Tag.REASONING
        case Refusal():
            return RefusalDelta(piece), Tag.TEXT
        case _:
            return ToolCallDelta(part.id, part.name, piece), Tag.ARGUMENTS


def _spoilt(plan: Plan[Frame[Event | _Raised]], failure: Failure) -> Plan[Frame[Event | _Raised]]:
    """Apply byte faults in process: the error that a client would have raised."""
    settings = failure.settings
    match failure.type:
        case "malformed_json":
            return _failing(plan, 0, UnreadableAnswerError(settings["raw"]))
        case "empty_body":
            return _failing(plan, 0, UnreadableAnswerError(""))
        case "html_error":
            return _failing(plan, 0, UnreadableAnswerError(page(settings["status"])))
        case "error_in_200":
            return _failing(plan, 0, embedded(failure))
        case "error_in_stream":
            return _failing(plan, settings["after_chunks"], embedded(failure))
    return plan


def _failing(
    plan: Plan[Frame[Event | _Raised]], chunks: int, error: Exception
) -> Plan[Frame[Event | _Raised]]:
    return interrupted(plan, chunks, lambda _: _Raised(error))
