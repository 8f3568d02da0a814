"""Structured output: JSON in a model's text, validated against its schema, with one repair request.

`validate_prefix` decides, while an answer is streamed, if it can still become valid.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from peripety.core.concurrency import closing
from peripety.engine.schema_validation import drop_invalid_nulls, validate_against_schema
from peripety.errors import FailedPreconditionError, Finding, InvalidArgumentError, PeripetyError, Severity
from peripety.gateway.message_normalization import EMPTY_ANSWER
from peripety.gateway.structured_output.json_repair import JsonCandidate, parse_candidates
from peripety.gateway.types.message import ChatMessage, ToolCall
from peripety.gateway.types.request import GenerateRequest, ResponseSchema
from peripety.gateway.types.response import (
    Completed,
    Completion,
    GatewayEvent,
    Repairing,
    StopReason,
    Usage,
    UsageTotal,
    sum_optional,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


_JSON_TYPES: dict[type, str] = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
}


class PrefixMismatchError(Exception):
    """Raised when no continuation of a value can be valid."""


def validate_prefix(schema: Mapping[str, Any], value: Any) -> Any:
    """Return the part of a partial value that is certain to be in the complete one, if that becomes valid.

    Only types and keys are checked, and only where the schema determines them unconditionally (`properties`,
    `additionalProperties`, `items`, `prefixItems`, `allOf`, and `$ref` inside of the schema). Alternatives
    cannot be decided before the end, so their values are returned unchanged. A null at a key that the schema
    does not name is left out, because it may represent an absent key.

    Raises:
        PrefixMismatchError: a type is wrong, or a key is not in the schema.
    """
    return _PrefixValidator(schema).validate([schema], value)


class _PrefixValidator:
    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document

    def validate(self, schemas: Iterable[Any], value: Any) -> Any:
        """Validate a value against all schemas of its position."""
        holding = list(self._applicable_schemas(schemas))
        if not all(_has_type(schema, value) for schema in holding):
            raise PrefixMismatchError
        match value:
            case dict():
                return dict(self._validate_members(holding, value))
            case list():
                return [
                    self.validate(_schemas_of_item(holding, index), item) for index, item in enumerate(value)
                ]
            case float() if not math.isfinite(value):
                raise PrefixMismatchError
        return value

    def _validate_members(
        self,
        holding: Sequence[Mapping[str, Any]],
        value: Mapping[str, Any],
    ) -> Iterator[tuple[str, Any]]:
        for key, member in value.items():
            schemas = _schemas_of_key(holding, key)
            if member is not None:
                yield key, self.validate(schemas, member)
            elif _allows_null(list(self._applicable_schemas(schemas))):
                yield key, None

    def _applicable_schemas(self, schemas: Iterable[Any]) -> Iterator[Mapping[str, Any]]:
        """Yield the schemas, with all that they reference or combine: each has to be met."""
        pending = list(schemas)
        seen: set[int] = set()
        while pending:
            schema = pending.pop()
            if schema is False:
                raise PrefixMismatchError
            if not isinstance(schema, dict) or id(schema) in seen:
                continue
            seen.add(id(schema))
            yield schema
            pending += schema.get("allOf", ())
            if "$ref" in schema:
                pending.append(self._resolve_reference(schema["$ref"]))

    def _resolve_reference(self, reference: str) -> Any:
        """Return the target of a reference; True, which accepts everything, unless it is a JSON Pointer."""
        root, *names = reference.split("/")
        found: Any = self._document if root == "#" else True
        for name in names:
            key = name.replace("~1", "/").replace("~0", "~")
            found = found.get(key, True) if isinstance(found, dict) else True
        return found


def _has_type(schema: Mapping[str, Any], value: Any) -> bool:
    named = _types(schema)
    if not named:
        return True
    kind = _JSON_TYPES[type(value)]
    whole = kind == "number" and value.is_integer()
    return kind in named or (kind == "integer" and "number" in named) or (whole and "integer" in named)


def _types(schema: Mapping[str, Any]) -> list[str]:
    types = schema.get("type", [])
    return [types] if isinstance(types, str) else types


def _allows_null(holding: Sequence[Mapping[str, Any]]) -> bool:
    return any(_types(schema) for schema in holding) and all(_has_type(schema, None) for schema in holding)


def _schemas_of_key(holding: Iterable[Mapping[str, Any]], key: str) -> Iterator[Any]:
    for schema in holding:
        if key in schema.get("properties", {}):
            yield schema["properties"][key]
        elif "patternProperties" not in schema:
            yield schema.get("additionalProperties", True)


def _schemas_of_item(holding: Iterable[Mapping[str, Any]], index: int) -> Iterator[Any]:
    for schema in holding:
        first = schema.get("prefixItems", ())
        yield first[index] if index < len(first) else schema.get("items", True)


_TOKEN_FIELDS = tuple(field.name for field in fields(Usage))
_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,18}")
_MAX_REPORTED_FINDINGS = 20
_ANSWER_INVALID_CODE = "ANSWER_INVALID"
_TRUNCATION_PREFIXES = ("CUT_OFF:", "TRUNCATED:")
_USED_UP = Finding("TRUNCATED", "", "the answer reached its length limit before its first word")
_REPAIR_INSTRUCTION = (
    "That answer was refused. Answer again with the whole JSON document and every finding fixed."
)


@dataclass(frozen=True, slots=True)
class AnswerValidation:
    """Result of a validation: the value and its findings; no findings means valid."""

    value: Any | None
    findings: tuple[Finding, ...] = ()


SendRequest: TypeAlias = Callable[[GenerateRequest], AsyncIterator[GatewayEvent]]
"""Makes one call; the last event is `Completed`."""

AnswerValidator: TypeAlias = Callable[[Completion, ResponseSchema], Awaitable[AnswerValidation]]
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
    answer = _select_document(text, schema)
    if answer.candidate.document is None:
        raise _not_json_error(answer.candidate)
    if answer.findings:
        raise InvalidArgumentError(
            f"answer does not match its schema: {answer.findings[0].message}",
            code="SCHEMA_MISMATCH",
            violations=[finding.violation for finding in answer.findings],
        )
    return answer.candidate.value


def extract_json(text: str) -> str:
    """Return the last whole JSON document of a model's answer as strict JSON; see `parse_json_with_schema`.

    Raises:
        InvalidArgumentError: the text contains no whole document (code NOT_JSON).
    """
    reading = _select_document(text, {}).candidate
    if reading.document is None:
        raise _not_json_error(reading)
    return reading.document


def schema_hint(schema: Mapping[str, Any]) -> str:
    """Return the prompt text that describes a schema for a provider without enforcement; deterministic."""
    document = json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
    return f"Answer with one JSON document, nothing else, that is valid against this JSON Schema:\n{document}"


async def validate_answer(completion: Completion, schema: ResponseSchema) -> AnswerValidation:
    """Validate an answer against its schema and then, if that succeeds, with the caller's own check."""
    cut = completion.stop_reason is StopReason.LENGTH
    answer = _select_document(completion.text, schema.document, truncated=cut)
    if answer.candidate.document is None:
        return AnswerValidation(
            None,
            tuple(map(_truncated_finding if cut else _not_json_finding, answer.findings)),
        )
    value, findings = answer.candidate.value, answer.findings
    if not findings and schema.accept is not None:
        findings = tuple(await schema.accept(value))
    return AnswerValidation(value, tuple(f for f in findings if f.severity is Severity.ERROR))


async def generate_valid(
    send: SendRequest,
    request: GenerateRequest,
    schema: ResponseSchema | None,
    validator: AnswerValidator = validate_answer,
) -> AsyncIterator[GatewayEvent]:
    """Request an answer, validate it, and if it is rejected, request it once more with the findings.

    An answer under an advisory schema is never rejected: it is returned with its findings. An empty answer
    that reached its length limit was used up by thoughts: it is requested once more with twice the room, and
    without a schema, only then.

    The repair request only appends the rejected answer and the findings, so the provider's prompt cache still
    matches. Neither of the two belongs into a history.

    Args:
        send: makes one call.
        request: the request.
        schema: the schema of the answer; None for any text.
        validator: validates the answer.

    Yields:
        The events of `send`, `Repairing` before the second call, and a `Completed` that covers both calls.

    Raises:
        FailedPreconditionError: the model declined (code ANSWER_REFUSED), or its last answer was not valid
            (code ANSWER_INVALID).
        PeripetyError: any error of `send`. Its details contain the usage so far; see `usage_until`.
    """
    question = request
    refused: Completion | None = None
    while True:
        try:
            async with closing(send(question)) as events:
                async for event in events:
                    if isinstance(event, Completed):
                        completion = _add_earlier_usage(refused, event.completion)
                    else:
                        yield event
        except PeripetyError as error:
            if refused is not None:
                error.details |= _usage_details(refused)
            raise
        if request.tools and completion.stop_reason is StopReason.TOOL_USE:
            # The rejection comes after the tool results.
            yield Completed(completion)
            return
        verdict = await _validate_completion(validator, completion, schema)
        if schema is None and completion.repaired:
            yield Completed(replace(completion, findings=()))
            return
        if (schema is not None and schema.advisory) or not verdict.findings:
            found = verdict.findings or completion.findings
            yield Completed(replace(completion, value=verdict.value, findings=found))
            return
        if completion.repaired:
            raise _invalid_answer_error(completion, verdict.findings)
        yield Repairing(verdict.findings, completion.usage, completion.calls)
        refused = replace(completion, findings=verdict.findings)
        question = (
            _with_more_room(request, completion)
            if is_used_up(completion)
            else _with_findings(request, completion.message, verdict.findings)
        )


def usage_until(error: PeripetyError) -> UsageTotal | None:
    """Return the usage of a failed answer; None if the error does not contain it."""
    told = {name: int(text) for name, text in error.details.items() if _WHOLE_NUMBER.fullmatch(text)}
    if not all(name in told for name in ("calls", *_TOKEN_FIELDS)):
        return None
    usage = Usage(**{name: told[name] for name in _TOKEN_FIELDS})
    return UsageTotal(told["calls"], usage, told.get("cost"), told.get("cache_savings"))


def was_truncated(error: PeripetyError) -> bool:
    """Return True if the answer failed because it was truncated, so that a smaller request may succeed."""
    is_answer = error.code == _ANSWER_INVALID_CODE
    return is_answer and any(
        violation.reason.startswith(_TRUNCATION_PREFIXES) for violation in error.violations
    )


def is_used_up(completion: Completion) -> bool:
    """Return True if an answer reached its length limit before its first word."""
    is_empty = not completion.text.strip() and not completion.tool_calls
    return is_empty and completion.stop_reason is StopReason.LENGTH


def _usage_details(completion: Completion) -> dict[str, str]:
    figures = {
        "calls": completion.calls,
        **asdict(completion.usage),
        "cost": completion.cost,
        "cache_savings": completion.cache_savings,
    }
    return {name: str(figure) for name, figure in figures.items() if figure is not None}


async def _validate_completion(
    validator: AnswerValidator,
    completion: Completion,
    schema: ResponseSchema | None,
) -> AnswerValidation:
    if schema is None:
        return AnswerValidation(None, (_USED_UP,) if is_used_up(completion) else ())
    if completion.stop_reason is StopReason.REFUSAL:
        raise FailedPreconditionError(
            f"model {completion.model} declined to answer; rephrase the request",
            code="ANSWER_REFUSED",
            details=_usage_details(completion),
        )
    return await validator(completion, schema)


def _add_earlier_usage(rejected: Completion | None, completion: Completion) -> Completion:
    """Return the second answer with the usage of both."""
    if rejected is None:
        return completion
    return replace(
        completion,
        usage=rejected.usage + completion.usage,
        calls=rejected.calls + completion.calls,
        cost=sum_optional(rejected.cost, completion.cost),
        cache_savings=sum_optional(rejected.cache_savings, completion.cache_savings),
        repaired=True,
        findings=rejected.findings,
    )


def _with_more_room(request: GenerateRequest, completion: Completion) -> GenerateRequest:
    """Return the request with twice the room that an empty answer has used up."""
    used = max(
        completion.usage.output_tokens,
        request.max_output_tokens or 0,
        request.answer_tokens or 0,
    )
    return replace(request, max_output_tokens=None, answer_tokens=2 * used or None)


def _with_findings(
    request: GenerateRequest,
    answer: ChatMessage,
    findings: Sequence[Finding],
) -> GenerateRequest:
    worst = findings[:_MAX_REPORTED_FINDINGS]
    told = [{"code": f.code, "path": f.path, "message": f.message} for f in worst]
    fixes = {f.code: f.remedy for f in worst if f.remedy}
    complaint = json.dumps(
        {"findings": told, "fixes": fixes, "instruction": _REPAIR_INSTRUCTION},
        ensure_ascii=False,
    )
    return replace(
        request,
        messages=(*request.messages, _rejected_answer(answer), ChatMessage.user(complaint)),
    )


def _rejected_answer(answer: ChatMessage) -> ChatMessage:
    """Return a rejected answer for the repair request: unchanged, without calls that get no result."""
    if not answer.text.strip():
        return EMPTY_ANSWER
    return replace(answer, parts=tuple(part for part in answer.parts if not isinstance(part, ToolCall)))


def _invalid_answer_error(completion: Completion, findings: Sequence[Finding]) -> FailedPreconditionError:
    first = findings[0]
    place = f" at {first.path}" if first.path else ""
    return FailedPreconditionError(
        f"model answer still invalid after one repair: {first.message}{place}",
        code=_ANSWER_INVALID_CODE,
        details=_usage_details(completion),
        violations=[finding.violation for finding in findings],
    )


def _not_json_error(candidate: JsonCandidate) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"answer is not JSON: {candidate.findings[0].message}",
        code="NOT_JSON",
        violations=[finding.violation for finding in candidate.findings],
    )


def _not_json_finding(finding: Finding) -> Finding:
    message = f"the answer is not JSON ({finding.message}); answer with one JSON document only"
    return replace(finding, message=message)


def _truncated_finding(finding: Finding) -> Finding:
    message = f"the answer reached its length limit ({finding.message}); write a shorter one"
    return Finding("TRUNCATED", finding.path, message)


@dataclass(frozen=True, slots=True)
class _SelectedDocument:
    """The relevant document of several, with its schema or syntax errors."""

    candidate: JsonCandidate
    findings: tuple[Finding, ...]


def _select_document(text: str, schema: Mapping[str, Any], *, truncated: bool = False) -> _SelectedDocument:
    """Return the last valid document in a text, else the last whole one, else the longest unreadable."""
    best: _SelectedDocument | None = None
    for reading in parse_candidates(text, truncated=truncated):
        answer = _validate_candidate(reading, schema)
        if truncated and reading.is_truncated:
            # The model was truncated within this one; the earlier ones were not its answer.
            return answer
        if best is None or _rank(answer) >= _rank(best):
            best = answer
    assert best is not None  # noqa: S101 - there is always one reading
    return best


def _rank(answer: _SelectedDocument) -> tuple[bool, bool, int]:
    whole = answer.candidate.document is not None
    return whole, not answer.findings, 0 if whole else answer.candidate.size


def _validate_candidate(candidate: JsonCandidate, schema: Mapping[str, Any]) -> _SelectedDocument:
    if candidate.document is None:
        return _SelectedDocument(candidate, candidate.findings)
    findings = validate_against_schema(schema, candidate.value)
    if findings:
        # Strict modes have no optional keys: a model writes null for an absent key.
        value = drop_invalid_nulls(schema, candidate.value)
        others = validate_against_schema(schema, value)
        if len(others) < len(findings):
            return _SelectedDocument(replace(candidate, value=value), tuple(others))
    return _SelectedDocument(candidate, tuple(findings))
