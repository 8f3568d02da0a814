"""Structured answers: JSON found in a model's text, held against its schema, asked for once more."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, TypeAlias

import jiter

from peripety import sim
from peripety.errors import (
    FailedPreconditionError,
    FieldViolation,
    Finding,
    InvalidArgumentError,
    PeripetyError,
    Severity,
    SpecError,
)
from peripety.gateway.model import (
    ChatMessage,
    ChatRole,
    Completed,
    Completion,
    GatewayEvent,
    GenerateRequest,
    Repairing,
    ResponseSchema,
    StopReason,
    Usage,
)
from peripety.gateway.streams import following
from peripety.sim.schema import check

__all__ = [
    "Ask",
    "Judge",
    "Verdict",
    "ask_until_valid",
    "judge_answer",
    "parse_json_with_schema",
    "used_until",
]

_FENCED = re.compile(r"```[^\n`]*\n(.*?)```", re.DOTALL)
_OPENER = re.compile(r"[{\[]")
# A string that nobody closes reaches to the end, so that one pass over the text is enough.
_MARK = re.compile(r'[{}\[\]]|"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
_MAX_SPANS = 16
_TOKEN_KINDS = tuple(field.name for field in fields(Usage))
_MAX_FINDINGS_TOLD = 20
_INSTRUCTION = (
    "That answer was refused. Answer again with the whole JSON document and every finding put right."
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of an answer: its value, and what is wrong with it; no findings means valid."""

    value: Any | None
    findings: tuple[Finding, ...] = ()


Ask: TypeAlias = Callable[[GenerateRequest], AsyncIterator[GatewayEvent]]
"""Makes one call; the last event is `Completed`."""

Judge: TypeAlias = Callable[[Completion, ResponseSchema], Awaitable[Verdict]]
"""Says whether an answer will do."""


def parse_json_with_schema(text: str, schema: Mapping[str, Any]) -> Any:
    """Find the JSON in a model's answer and hold it against a schema.

    The JSON may stand alone, in a code fence, or in the middle of prose.

    Args:
        text: what the model wrote.
        schema: the JSON Schema (2020-12) that the value has to be valid against.

    Returns:
        The parsed value.

    Raises:
        InvalidArgumentError: there is no JSON in the text (code NOT_JSON), or it is not valid against
            the schema (code SCHEMA_MISMATCH, the violations say where).
    """
    try:
        value = _find_json(text)
    except ValueError as error:
        raise InvalidArgumentError(f"The answer is not JSON: {error}", code="NOT_JSON") from None
    findings = check(schema, value)
    if findings:
        raise InvalidArgumentError(
            f"The answer does not match its schema: {findings[0].message}",
            code="SCHEMA_MISMATCH",
            violations=_violations(findings),
        )
    return value


async def judge_answer(completion: Completion, schema: ResponseSchema) -> Verdict:
    """Hold an answer against its schema and, when that is met, against the caller's own check."""
    try:
        value = _find_json(completion.text)
    except ValueError as error:
        return Verdict(None, (_not_json(error, completion.stop_reason),))
    findings: Sequence[Finding] = check(schema.document, value)
    if not findings and schema.accept is not None:
        findings = await schema.accept(value)
    return Verdict(value, tuple(f for f in findings if f.severity is Severity.ERROR))


async def ask_until_valid(
    ask: Ask, request: GenerateRequest, schema: ResponseSchema, judge: Judge = judge_answer
) -> AsyncIterator[GatewayEvent]:
    """Ask, judge the answer, and when it is refused ask once more with the findings.

    The question is only ever extended, by the refused answer and the findings, so whatever the provider
    cached of it stays valid. Neither of the two belongs into a history.

    Args:
        ask: makes one call.
        request: the question.
        schema: what the answer has to satisfy.
        judge: says whether it does.

    Yields:
        What `ask` yields, `Repairing` before the second call, and a `Completed` that covers both calls.

    Raises:
        FailedPreconditionError: the model declined (code ANSWER_REFUSED), or its last answer was not valid
            (code ANSWER_INVALID). What was used until then is in the details; see `used_until`.
    """
    question = request
    refused: Completion | None = None
    while True:
        async with following(ask(question)) as events:
            async for event in events:
                if isinstance(event, Completed):
                    completion = _following(refused, event.completion)
                else:
                    yield event
        verdict = await _judge(judge, completion, schema)
        if not verdict.findings:
            yield Completed(replace(completion, value=verdict.value))
            return
        if completion.repaired:
            raise _answer_invalid(completion, verdict.findings)
        yield Repairing(verdict.findings, completion.usage, completion.calls)
        refused = replace(completion, findings=verdict.findings)
        question = _with_findings(request, completion.text, verdict.findings)


def used_until(error: PeripetyError) -> tuple[int, Usage] | None:
    """The calls and tokens that an answer cost before it was given up; None when the error does not say."""
    told = error.details
    if not all(told.get(name, "").isdecimal() for name in ("calls", *_TOKEN_KINDS)):
        return None
    return int(told["calls"]), Usage(**{name: int(told[name]) for name in _TOKEN_KINDS})


def _used(completion: Completion) -> dict[str, str]:
    counts = {"calls": completion.calls, **asdict(completion.usage)}
    return {name: str(count) for name, count in counts.items()}


async def _judge(judge: Judge, completion: Completion, schema: ResponseSchema) -> Verdict:
    if completion.stop_reason is StopReason.REFUSAL:
        raise FailedPreconditionError(
            f"The model {completion.model} declined to answer; put the request differently",
            code="ANSWER_REFUSED",
            details=_used(completion),
        )
    return await judge(completion, schema)


def _following(refused: Completion | None, completion: Completion) -> Completion:
    """Let the second answer account for the first one as well."""
    if refused is None:
        return completion
    return replace(
        completion,
        usage=refused.usage + completion.usage,
        calls=refused.calls + completion.calls,
        repaired=True,
        findings=refused.findings,
    )


def _with_findings(request: GenerateRequest, answer: str, findings: Sequence[Finding]) -> GenerateRequest:
    told = [{"code": f.code, "path": f.path, "message": f.message} for f in findings[:_MAX_FINDINGS_TOLD]]
    complaint = json.dumps({"findings": told, "instruction": _INSTRUCTION}, ensure_ascii=False)
    exchange = (
        ChatMessage(ChatRole.ASSISTANT, answer or "(no answer)"),
        ChatMessage(ChatRole.USER, complaint),
    )
    return replace(request, messages=request.messages + exchange)


def _answer_invalid(completion: Completion, findings: Sequence[Finding]) -> FailedPreconditionError:
    first = findings[0]
    place = f" at {first.path}" if first.path else ""
    return FailedPreconditionError(
        f"The model gave no valid answer, even when told what was wrong: {first.message}{place}",
        code="ANSWER_INVALID",
        details=_used(completion),
        violations=_violations(findings),
    )


def _violations(findings: Sequence[Finding]) -> list[FieldViolation]:
    return [FieldViolation(f.path or "/", f"{f.code}: {f.message}") for f in findings]


def _not_json(error: ValueError, stop_reason: StopReason) -> Finding:
    if stop_reason is StopReason.LENGTH:
        return Finding("TRUNCATED", "", f"the answer reached its length limit ({error}); write a shorter one")
    return Finding("NOT_JSON", "", f"the answer is not JSON ({error}); answer with one JSON document only")


def _find_json(text: str) -> Any:
    for candidate in (text, *_FENCED.findall(text)):
        try:
            return _parse(candidate)
        except ValueError:
            continue
    for span in sorted(_spans(text), key=len, reverse=True):
        try:
            return _parse(span)
        except ValueError:
            continue
    opener = _OPENER.search(text)
    if opener is None:
        raise ValueError("there is no object or array in it")
    return _parse(text[opener.start() :])


def _spans(text: str) -> Iterator[str]:
    """The first few stretches of text with balanced brackets."""
    start = _OPENER.search(text)
    for _ in range(_MAX_SPANS):
        if start is None:
            return
        end = _balanced_end(text, start.start())
        if end is not None:
            yield text[start.start() : end]
        elif _is_cut_off(text[start.start() :]):
            # What is balanced inside of it is a part of the answer, not the answer.
            return
        start = _OPENER.search(text, end or start.end())


def _is_cut_off(text: str) -> bool:
    try:
        jiter.from_json(text.encode(errors="surrogatepass"), partial_mode=True)
    except ValueError:
        return False
    return True


def _balanced_end(text: str, start: int) -> int | None:
    depth = 0
    for mark in _MARK.finditer(text, start):
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(mark.group(), 0)
        if depth == 0:
            return mark.end()
    return None


def _parse(text: str) -> Any:
    """The value of a JSON text, through the one border that documents pass, however they come."""
    try:
        return sim.parse(text)
    except SpecError as error:
        raise ValueError(error.findings[0].message) from None
