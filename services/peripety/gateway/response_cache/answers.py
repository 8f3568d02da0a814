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
    SchemaMethod,
    SchemaReport,
    StopReason,
    TextDelta,
    Usage,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peripety.gateway.model import GatewayEvent

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
    """Whether an answer came to its own end: not cut at a limit, not refused, not stopped by who knows what.

    An answer that failed, or was invalid even after its repair, never becomes a completion.
    """
    return completion.stop_reason is StopReason.END


def at_no_cost(completion: Completion) -> Completion:
    """The same answer, for somebody for whom no model was called."""
    # Its own value, too: what one caller does to it is none of another's business.
    return replace(
        completion, value=deepcopy(completion.value), usage=Usage(), calls=0, from_response_cache=True
    )


def encode(completion: Completion) -> bytes:
    """Write an answer down, without what it cost."""
    report = completion.schema_report
    document = {
        "text": completion.text,
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
        text=document["text"],
        value=document["value"],
        usage=Usage(),
        stop_reason=StopReason.END,
        model=document["model"],
        provider=document["provider"],
        repaired=document["repaired"],
        findings=_findings(document["findings"]),
        schema_report=None if report is None else SchemaReport(SchemaMethod(report[0]), _findings(report[1])),
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
    for start in range(0, len(completion.text), _DELTA_CHARACTERS):
        yield TextDelta(completion.text[start : start + _DELTA_CHARACTERS])
    yield Completed(completion)
