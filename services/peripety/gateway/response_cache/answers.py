"""Stored answers: which may be, how they are written, and how they are told again."""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from peripety.errors import Finding, Severity
from peripety.gateway.model import (
    Completed,
    Completion,
    Reasoning,
    ReasoningDelta,
    SchemaMethod,
    SchemaReport,
    StopReason,
    Text,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    Usage,
)
from peripety.gateway.writing import read_message, write_message

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peripety.gateway.model import GatewayEvent, Part

__all__ = ["StoredAnswer", "at_no_cost", "decode", "encode", "may_be_stored", "replay"]

_DELTA_CHARACTERS = 512


class StoredAnswer(NamedTuple):
    """An answer as it is kept.

    Attributes:
        data: the answer, written by `encode`.
        stored: when it was given, in seconds since 1970.
    """

    data: bytes
    stored: float


def may_be_stored(completion: Completion) -> bool:
    """Whether an answer came to its own end, or to a wish for tools: not cut, not refused.

    An answer that failed, or was invalid even after its repair, never becomes a completion.
    """
    return completion.stop_reason in {StopReason.END, StopReason.TOOL_USE}


def at_no_cost(completion: Completion) -> Completion:
    """The same answer, for somebody for whom no model was called."""
    # Its own value, too: what one caller does to it is none of another's business.
    return replace(
        completion,
        value=deepcopy(completion.value),
        usage=Usage(),
        cost=0,
        cache_savings=0,
        cache_plan=None,
        calls=0,
        from_response_cache=True,
    )


def encode(completion: Completion) -> bytes:
    """Write an answer down, without what it cost."""
    report = completion.schema_report
    document = {
        "message": write_message(completion.message),
        "stop_reason": completion.stop_reason.value,
        "value": completion.value,
        "model": completion.model,
        "provider": completion.provider,
        "repaired": completion.repaired,
        "findings": _written(completion.findings),
        "schema_report": None if report is None else [report.method.value, _written(report.dropped)],
    }
    return json.dumps(document, separators=(",", ":")).encode()


def decode(data: bytes) -> Completion:
    """Read what `encode` has written."""
    document: dict[str, Any] = json.loads(data)
    report = document["schema_report"]
    return Completion(
        message=read_message(document["message"]),
        value=document["value"],
        usage=Usage(),
        stop_reason=StopReason(document["stop_reason"]),
        model=document["model"],
        provider=document["provider"],
        repaired=document["repaired"],
        findings=_findings(document["findings"]),
        schema_report=None if report is None else SchemaReport(SchemaMethod(report[0]), _findings(report[1])),
        cost=0,
        cache_savings=0,
        calls=0,
        from_response_cache=True,
    )


def _written(findings: Sequence[Finding]) -> list[list[str]]:
    return [[f.code, f.path, f.message, f.severity.name] for f in findings]


def _findings(written: Sequence[Sequence[str]]) -> tuple[Finding, ...]:
    return tuple(
        Finding(code, path, message, Severity[severity]) for code, path, message, severity in written
    )


def replay(answer: StoredAnswer) -> Iterator[GatewayEvent]:
    """Tell an answer again, as the stream that it was."""
    completion = decode(answer.data)
    for part in completion.message.parts:
        yield from _deltas(part)
    yield Completed(completion)


def _deltas(part: Part) -> Iterator[GatewayEvent]:
    match part:
        case Text():
            yield from map(TextDelta, _pieces(part.text))
        case Reasoning():
            yield from map(ReasoningDelta, _pieces(part.text))
        case ToolCall():
            yield ToolCallDelta(part.call_id, part.arguments, part.name)


def _pieces(text: str) -> list[str]:
    return [text[start : start + _DELTA_CHARACTERS] for start in range(0, len(text), _DELTA_CHARACTERS)]
