"""Conversion of answers to scripted responses, faults and paces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.simulator.failures import KINDS, Place
from peripety.simulator.model import Reasoning, Refusal, Stop, Text, ToolUse
from peripety.simulator.scenario.model import Failure, Pace, Response, ScriptedCall, ScriptedUsage

if TYPE_CHECKING:
    from peripety.simulator.delivery.plan import Manner
    from peripety.simulator.model import Part, Reply, Usage
    from peripety.simulator.record.readers import Draft

__all__ = ["observed", "scripted", "spoilt"]

_BURST_MS = 20.0


def scripted(reply: Reply | Draft, pace: Pace | None, delay_ms: int = 0) -> Response:
    """Return the scripted response for an answer.

    Args:
        reply: the answer.
        pace: its timing.
        delay_ms: its delay.
    """
    text, stop = _joined(reply, Text), reply.stop
    if stop is Stop.STOP_SEQUENCE and reply.stop_sequence is not None:
        # A repeated request contains the same stop sequence.
        text, stop = text + reply.stop_sequence, None
    return Response(
        text=text,
        reasoning=_joined(reply, Reasoning),
        refusal=_joined(reply, Refusal) or None,
        tool_calls=tuple(
            ScriptedCall(part.name, part.input) for part in reply.parts if isinstance(part, ToolUse)
        ),
        stop=stop,
        usage=None if reply.usage is None else _claims(reply.usage),
        delay_ms=delay_ms,
        pace=pace,
    )


def spoilt(manner: Manner) -> Failure | None:
    """Return the delivery fault to record; None if the answer itself shows the fault."""
    failure = manner.failure
    if failure is None or KINDS[failure.type].place is Place.ANSWER:
        return None
    return Failure(failure.type, failure.settings)


def observed(draft: Draft, ended_ms: float, *, stream: bool) -> Pace:
    """Return the observed pace of an answer.

    Args:
        draft: the answer.
        ended_ms: the time of its last byte, in milliseconds after the request.
        stream: True if it was streamed.
    """
    if not stream or not draft.times:
        return Pace(first_token_ms=round(ended_ms))
    first, last, chunks = draft.times[0], draft.times[-1], len(draft.times)
    tokens = max(_shown_tokens(draft), chunks)
    # Data from a single socket read does not determine a rate.
    rate = (
        None if last - first < _BURST_MS else round(tokens * 1000 * (chunks - 1) / chunks / (last - first), 1)
    )
    return Pace(round(first), rate, max(1, round(tokens / chunks)))


def _shown_tokens(draft: Draft) -> int:
    if draft.usage is None:
        return 0
    shown = any(isinstance(part, Reasoning) for part in draft.parts)
    return draft.usage.output - (0 if shown else draft.usage.reasoning)


def _joined(reply: Reply | Draft, kind: type[Part]) -> str:
    return "".join(piece for part in reply.parts if isinstance(part, kind) for piece in part.pieces)


def _claims(usage: Usage) -> ScriptedUsage:
    return ScriptedUsage(
        input_tokens=usage.input,
        output_tokens=usage.output,
        reasoning_tokens=usage.reasoning,
        cache_read_tokens=usage.read,
        cache_write_tokens=sum(usage.written.values()) or None,
    )
