"""Structured output: JSON in a model's text, validated against its schema, with one repair request."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, TypeAlias

from peripety.errors import (
    FailedPreconditionError,
    Finding,
    InvalidArgumentError,
    PeripetyError,
    Severity,
)
from peripety.gateway.history import NO_ANSWER
from peripety.gateway.model import (
    ChatMessage,
    Completed,
    Completion,
    GatewayEvent,
    GenerateRequest,
    Repairing,
    ResponseSchema,
    Spent,
    StopReason,
    ToolCall,
    Usage,
    sum_of_known,
)
from peripety.gateway.objects.json_text import Reading, readings
from peripety.gateway.streams import following
from peripety.sim.schema import check, without_nulls

__all__ = [
    "Ask",
    "Judge",
    "Verdict",
    "ask_until_valid",
    "extract_json",
    "judge_answer",
    "parse_json_with_schema",
    "schema_hint",
    "used_until",
    "was_cut_off",
]

_TOKEN_KINDS = tuple(field.name for field in fields(Usage))
_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,18}")
_MAX_FINDINGS_TOLD = 20
_ANSWER_INVALID = "ANSWER_INVALID"
_CUT_OFF = ("CUT_OFF:", "TRUNCATED:")
_INSTRUCTION = "That answer was refused. Answer again with the whole JSON document and every finding fixed."


@dataclass(frozen=True, slots=True)
class Verdict:
    """Result of a validation: the value and its findings; no findings means valid."""

    value: Any | None
    findings: tuple[Finding, ...] = ()


Ask: TypeAlias = Callable[[GenerateRequest], AsyncIterator[GatewayEvent]]
"""Makes one call; the last event is `Completed`."""

Judge: TypeAlias = Callable[[Completion, ResponseSchema], Awaitable[Verdict]]
"""Validates an answer."""


def parse_json_with_schema(text: str, schema: Mapping[str, Any]) -> Any:
    """Extract the JSON from a model's answer and validate it against a schema.

    The JSON may be alone, in a code fence, or surrounded by prose. Of several documents the last valid one is
    the answer. Unambiguous errors are repaired: comments, trailing commas, single quotes, bare keys, Python's
    literals, line breaks and quotes inside of strings, missing commas, and a null where the schema allows
    only an absent key. The value is always valid against the original schema.

    A document without its closing bracket was truncated and is rejected: nothing is ever completed. Ambiguous
    input is rejected too: a repeated key, a NaN, a missing value, a missing or extra bracket.

    Args:
        text: the model's text.
        schema: the JSON Schema (2020-12) of the value.

    Returns:
        The parsed value.

    Raises:
        InvalidArgumentError: the text contains no whole JSON document (code NOT_JSON), or the document is not
            valid against the schema (code SCHEMA_MISMATCH). The violations name the problems and their paths.
    """
    answer = _find(text, schema)
    if answer.reading.document is None:
        raise _not_json(answer.reading)
    if answer.findings:
        raise InvalidArgumentError(
            f"answer does not match its schema: {answer.findings[0].message}",
            code="SCHEMA_MISMATCH",
            violations=[finding.violation for finding in answer.findings],
        )
    return answer.reading.value


def extract_json(text: str) -> str:
    """Return the last whole JSON document of a model's answer as strict JSON; see `parse_json_with_schema`.

    Raises:
        InvalidArgumentError: the text contains no whole document (code NOT_JSON).
    """
    reading = _find(text, {}).reading
    if reading.document is None:
        raise _not_json(reading)
    return reading.document


def schema_hint(schema: Mapping[str, Any]) -> str:
    """Return the prompt text that describes a schema for a provider without enforcement; deterministic."""
    document = json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
    return f"Answer with one JSON document, nothing else, that is valid against this JSON Schema:\n{document}"


async def judge_answer(completion: Completion, schema: ResponseSchema) -> Verdict:
    """Validate an answer against its schema and then, if that succeeds, with the caller's own check."""
    cut = completion.stop_reason is StopReason.LENGTH
    answer = _find(completion.text, schema.document, cut=cut)
    if answer.reading.document is None:
        return Verdict(None, tuple(map(_told_shorter if cut else _told, answer.findings)))
    value, findings = answer.reading.value, answer.findings
    if not findings and schema.accept is not None:
        findings = tuple(await schema.accept(value))
    return Verdict(value, tuple(f for f in findings if f.severity is Severity.ERROR))


async def ask_until_valid(
    ask: Ask, request: GenerateRequest, schema: ResponseSchema, judge: Judge = judge_answer
) -> AsyncIterator[GatewayEvent]:
    """Request an answer, validate it, and if it is rejected, request it once more with the findings.

    An answer under an advisory schema is never rejected: it is returned with its findings.

    The repair request only appends the rejected answer and the findings, so the provider's prompt cache still
    matches. Neither of the two belongs into a history.

    Args:
        ask: makes one call.
        request: the request.
        schema: the schema of the answer.
        judge: validates the answer.

    Yields:
        The events of `ask`, `Repairing` before the second call, and a `Completed` that covers both calls.

    Raises:
        FailedPreconditionError: the model declined (code ANSWER_REFUSED), or its last answer was not valid
            (code ANSWER_INVALID).
        PeripetyError: any error of `ask`. Its details contain the usage so far; see `used_until`.
    """
    question = request
    refused: Completion | None = None
    while True:
        try:
            async with following(ask(question)) as events:
                async for event in events:
                    if isinstance(event, Completed):
                        completion = _following(refused, event.completion)
                    else:
                        yield event
        except PeripetyError as error:
            if refused is not None:
                error.details |= _used(refused)
            raise
        if request.tools and completion.stop_reason is StopReason.TOOL_USE:
            # The rejection comes after the tool results.
            yield Completed(completion)
            return
        verdict = await _judge(judge, completion, schema)
        if schema.advisory or not verdict.findings:
            found = verdict.findings or completion.findings
            yield Completed(replace(completion, value=verdict.value, findings=found))
            return
        if completion.repaired:
            raise _answer_invalid(completion, verdict.findings)
        yield Repairing(verdict.findings, completion.usage, completion.calls)
        refused = replace(completion, findings=verdict.findings)
        question = _with_findings(request, completion.message, verdict.findings)


def used_until(error: PeripetyError) -> Spent | None:
    """Return the usage of a failed answer; None if the error does not contain it."""
    told = {name: int(text) for name, text in error.details.items() if _WHOLE_NUMBER.fullmatch(text)}
    if not all(name in told for name in ("calls", *_TOKEN_KINDS)):
        return None
    usage = Usage(**{name: told[name] for name in _TOKEN_KINDS})
    return Spent(told["calls"], usage, told.get("cost"), told.get("cache_savings"))


def was_cut_off(error: PeripetyError) -> bool:
    """Return True if the answer failed because it was truncated, so that a smaller request may succeed."""
    is_answer = error.code == _ANSWER_INVALID
    return is_answer and any(violation.reason.startswith(_CUT_OFF) for violation in error.violations)


def _used(completion: Completion) -> dict[str, str]:
    figures = {
        "calls": completion.calls,
        **asdict(completion.usage),
        "cost": completion.cost,
        "cache_savings": completion.cache_savings,
    }
    return {name: str(figure) for name, figure in figures.items() if figure is not None}


async def _judge(judge: Judge, completion: Completion, schema: ResponseSchema) -> Verdict:
    if completion.stop_reason is StopReason.REFUSAL:
        raise FailedPreconditionError(
            f"model {completion.model} declined to answer; rephrase the request",
            code="ANSWER_REFUSED",
            details=_used(completion),
        )
    return await judge(completion, schema)


def _following(refused: Completion | None, completion: Completion) -> Completion:
    """Return the second answer with the usage of both."""
    if refused is None:
        return completion
    return replace(
        completion,
        usage=refused.usage + completion.usage,
        calls=refused.calls + completion.calls,
        cost=sum_of_known(refused.cost, completion.cost),
        cache_savings=sum_of_known(refused.cache_savings, completion.cache_savings),
        repaired=True,
        findings=refused.findings,
    )


def _with_findings(
    request: GenerateRequest, answer: ChatMessage, findings: Sequence[Finding]
) -> GenerateRequest:
    worst = findings[:_MAX_FINDINGS_TOLD]
    told = [{"code": f.code, "path": f.path, "message": f.message} for f in worst]
    fixes = {f.code: f.remedy for f in worst if f.remedy}
    complaint = json.dumps(
        {"findings": told, "fixes": fixes, "instruction": _INSTRUCTION}, ensure_ascii=False
    )
    return replace(request, messages=(*request.messages, _said(answer), ChatMessage.user(complaint)))


def _said(answer: ChatMessage) -> ChatMessage:
    """Return a rejected answer for the repair request: unchanged, without calls that get no result."""
    if not answer.text.strip():
        return NO_ANSWER
    return replace(answer, parts=tuple(part for part in answer.parts if not isinstance(part, ToolCall)))


def _answer_invalid(completion: Completion, findings: Sequence[Finding]) -> FailedPreconditionError:
    first = findings[0]
    place = f" at {first.path}" if first.path else ""
    return FailedPreconditionError(
        f"model answer still invalid after one repair: {first.message}{place}",
        code=_ANSWER_INVALID,
        details=_used(completion),
        violations=[finding.violation for finding in findings],
    )


def _not_json(reading: Reading) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"answer is not JSON: {reading.findings[0].message}",
        code="NOT_JSON",
        violations=[finding.violation for finding in reading.findings],
    )


def _told(finding: Finding) -> Finding:
    message = f"the answer is not JSON ({finding.message}); answer with one JSON document only"
    return replace(finding, message=message)


def _told_shorter(finding: Finding) -> Finding:
    message = f"the answer reached its length limit ({finding.message}); write a shorter one"
    return Finding("TRUNCATED", finding.path, message)


@dataclass(frozen=True, slots=True)
class _Answer:
    """The relevant document of several, with its schema or syntax errors."""

    reading: Reading
    findings: tuple[Finding, ...]


def _find(text: str, schema: Mapping[str, Any], *, cut: bool = False) -> _Answer:
    """Return the last valid document in a text, else the last whole one, else the longest unreadable."""
    best: _Answer | None = None
    for reading in readings(text, cut=cut):
        answer = _judged(reading, schema)
        if cut and reading.unfinished:
            # The model was truncated within this one; the earlier ones were not its answer.
            return answer
        if best is None or _rank(answer) >= _rank(best):
            best = answer
    assert best is not None  # noqa: S101 - there is always one reading
    return best


def _rank(answer: _Answer) -> tuple[bool, bool, int]:
    whole = answer.reading.document is not None
    return whole, not answer.findings, 0 if whole else answer.reading.size


def _judged(reading: Reading, schema: Mapping[str, Any]) -> _Answer:
    if reading.document is None:
        return _Answer(reading, reading.findings)
    findings = check(schema, reading.value)
    if findings:
        # Strict modes have no optional keys: a model writes null for an absent key.
        value = without_nulls(schema, reading.value)
        others = check(schema, value)
        if len(others) < len(findings):
            return _Answer(replace(reading, value=value), tuple(others))
    return _Answer(reading, tuple(findings))
