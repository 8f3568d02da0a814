"""Prompts and answers ↔ protobuf messages, nothing else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jiter

from peripety.api.common.v1 import common_pb2 as common
from peripety.api.gateway.v1 import gateway_pb2 as pb
from peripety.errors import UnsupportedError
from peripety.gateway.model import (
    ChatMessage,
    ChatRole,
    Completion,
    GenerateRequest,
    Repairing,
    ResponseCacheMode,
    ResponseSchema,
    TextDelta,
)
from peripety.requests import check_request_id, refuse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.errors import Finding
    from peripety.gateway.growing import GrowingValue
    from peripety.gateway.model import GatewayEvent, SchemaReport, Usage

__all__ = ["event_response", "generate_request", "object_request", "object_response"]

_ROLES = {
    pb.CHAT_ROLE_SYSTEM: ChatRole.SYSTEM,
    pb.CHAT_ROLE_USER: ChatRole.USER,
    pb.CHAT_ROLE_ASSISTANT: ChatRole.ASSISTANT,
}
_RESPONSE_CACHE_MODES = {
    pb.RESPONSE_CACHE_MODE_UNSPECIFIED: ResponseCacheMode.OFF,
    pb.RESPONSE_CACHE_MODE_OFF: ResponseCacheMode.OFF,
    pb.RESPONSE_CACHE_MODE_USE: ResponseCacheMode.USE,
    pb.RESPONSE_CACHE_MODE_REFRESH: ResponseCacheMode.REFRESH,
}
_LATER_OPTIONS = ("stop_sequences", "fallback_models", "cache", "budget")


def object_request(request: pb.GenerateObjectRequest) -> GenerateRequest:
    """What a request for an object asks of a model."""
    if not request.HasField("schema"):
        raise refuse(".schema", "is required: say what the object has to be valid against")
    return generate_request(request)


def generate_request(request: pb.GenerateRequest | pb.GenerateObjectRequest) -> GenerateRequest:
    """What a request asks of a model."""
    check_request_id(request.request_id)
    _refuse_what_comes_later(request)
    options = request.options
    if options.response_cache not in _RESPONSE_CACHE_MODES:
        raise refuse(".options.response_cache", "must be a mode that the contract names")
    return GenerateRequest(
        system=request.prompt.system or None,
        messages=tuple(_message(index, message) for index, message in enumerate(request.prompt.messages)),
        schema=_schema(request.schema) if request.HasField("schema") else None,
        model=options.model or None,
        max_output_tokens=options.max_output_tokens if options.HasField("max_output_tokens") else None,
        temperature=options.temperature if options.HasField("temperature") else None,
        seed=options.seed if options.HasField("seed") else None,
        response_cache=_RESPONSE_CACHE_MODES[options.response_cache],
    )


def _refuse_what_comes_later(request: pb.GenerateRequest | pb.GenerateObjectRequest) -> None:
    """Refuse what this version would have to ignore: an ignored budget or tool is worse than none."""
    options = request.options
    asked = [f".options.{name}" for name in _LATER_OPTIONS if _is_set(options, name)]
    if request.conversation_id:
        asked.append(".conversation_id")
    asked += [f".prompt.{name}" for name in ("tools", "tool_choice") if _is_set(request.prompt, name)]
    if asked:
        raise UnsupportedError(
            f"This server does not support {', '.join(asked)} yet; leave it out", code="FIELD_UNSUPPORTED"
        )


def _is_set(message: Any, field: str) -> bool:
    return any(descriptor.name == field for descriptor, _ in message.ListFields())


def _message(index: int, message: pb.ChatMessage) -> ChatMessage:
    field = f".prompt.messages[{index}]"
    if message.role not in _ROLES:
        raise refuse(f"{field}.role", "must be CHAT_ROLE_USER, CHAT_ROLE_ASSISTANT or CHAT_ROLE_SYSTEM")
    for position, part in enumerate(message.parts):
        kind = part.WhichOneof("part")
        if kind != "text":
            raise UnsupportedError(
                f"{field}.parts[{position}] is {kind or 'empty'}; this server takes text parts only so far",
                code="FIELD_UNSUPPORTED",
            )
    return ChatMessage(_ROLES[message.role], "".join(part.text for part in message.parts))


def _schema(schema: pb.ResponseSchema) -> ResponseSchema:
    try:
        document = jiter.from_json(schema.document, allow_inf_nan=False, catch_duplicate_keys=True)
    except ValueError as error:
        raise refuse(".schema.document", f"is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise refuse(".schema.document", "must be one JSON object")
    return ResponseSchema(schema.name, document)


def event_response(sequence: int, event: GatewayEvent) -> pb.GenerateResponse:
    """What happened to an answer."""
    if isinstance(event, TextDelta):
        return pb.GenerateResponse(sequence=sequence, text_delta=event.text)
    if isinstance(event, Repairing):
        return pb.GenerateResponse(sequence=sequence, repairing=_repairing(event))
    return pb.GenerateResponse(sequence=sequence, completed=_completion(event.completion))


def object_response(event: GatewayEvent, growing: GrowingValue) -> pb.GenerateObjectResponse | None:
    """What happened to an object, without a sequence; None when it did not grow."""
    if isinstance(event, TextDelta):
        value = growing.feed(event.text)
        return None if value is None else pb.GenerateObjectResponse(partial=_json(value))
    if isinstance(event, Repairing):
        return pb.GenerateObjectResponse(repairing=_repairing(event))
    return pb.GenerateObjectResponse(completed=_completion(event.completion))


def _repairing(event: Repairing) -> pb.Repairing:
    return pb.Repairing(findings=_findings(event.findings), usage=_usage(event.usage), calls=event.calls)


def _completion(completion: Completion) -> pb.Completion:
    return pb.Completion(
        text=completion.text,
        value=None if completion.value is None else _json(completion.value),
        usage=_usage(completion.usage),
        stop_reason=pb.StopReason.Value(f"STOP_REASON_{completion.stop_reason.name}"),
        model=completion.model,
        provider=completion.provider,
        repaired=completion.repaired,
        findings=_findings(completion.findings),
        message=pb.ChatMessage(
            role=pb.CHAT_ROLE_ASSISTANT,
            parts=[pb.ContentPart(text=completion.text)] if completion.text else [],
        ),
        from_response_cache=completion.from_response_cache,
        schema_report=None if completion.schema_report is None else _schema_report(completion.schema_report),
        calls=completion.calls,
    )


def _schema_report(report: SchemaReport) -> pb.SchemaReport:
    return pb.SchemaReport(
        method=pb.SchemaMethod.Value(f"SCHEMA_METHOD_{report.method.name}"), dropped=_findings(report.dropped)
    )


def _findings(findings: Sequence[Finding]) -> list[common.Finding]:
    return [
        common.Finding(
            code=finding.code,
            path=finding.path,
            message=finding.message,
            severity=common.Severity.Value(f"SEVERITY_{finding.severity.name}"),
        )
        for finding in findings
    ]


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def _usage(usage: Usage) -> common.TokenUsage:
    return common.TokenUsage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
    )
