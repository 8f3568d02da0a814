"""The model gateway of another process, behind the protocol that the one of this process implements."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

from peripety import sim
from peripety.api.common.v1 import common_pb2 as common
from peripety.api.gateway.v1 import gateway_pb2 as pb
from peripety.api.gateway.v1.gateway_pb2_grpc import GatewayServiceStub
from peripety.errors import Finding, Severity, SpecError, UnavailableError
from peripety.gateway.model import (
    ChatRole,
    Completed,
    Completion,
    GenerateRequest,
    Repairing,
    ResponseCacheMode,
    ResponseSchema,
    SchemaMethod,
    SchemaReport,
    StopReason,
    TextDelta,
    Usage,
)
from peripety.gateway.streams import completion_of, following
from peripety.gateway.structured import Verdict, ask_until_valid

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    import grpc.aio

    from peripety.gateway.model import GatewayEvent

__all__ = ["RemoteModelGateway"]

_ROLES = {
    ChatRole.SYSTEM: pb.CHAT_ROLE_SYSTEM,
    ChatRole.USER: pb.CHAT_ROLE_USER,
    ChatRole.ASSISTANT: pb.CHAT_ROLE_ASSISTANT,
}
_RESPONSE_CACHE_MODES = {
    ResponseCacheMode.OFF: pb.RESPONSE_CACHE_MODE_OFF,
    ResponseCacheMode.USE: pb.RESPONSE_CACHE_MODE_USE,
    ResponseCacheMode.REFRESH: pb.RESPONSE_CACHE_MODE_REFRESH,
}
_STOP_REASONS = {
    pb.STOP_REASON_END: StopReason.END,
    pb.STOP_REASON_LENGTH: StopReason.LENGTH,
    pb.STOP_REASON_REFUSAL: StopReason.REFUSAL,
}
_SCHEMA_METHODS = {
    pb.SCHEMA_METHOD_NATIVE: SchemaMethod.NATIVE,
    pb.SCHEMA_METHOD_EXTRACTION: SchemaMethod.EXTRACTION,
}


class RemoteModelGateway:
    """Implements `ModelGateway` by calling a GatewayService.

    The service holds answers against their schema. The caller's own check (`ResponseSchema.accept`) cannot
    travel, so it runs here, and so does the repair that it asks for when the service needed none.

    Args:
        channel: leads to the service.
    """

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._stub = GatewayServiceStub(channel)

    async def stream(self, request: GenerateRequest) -> AsyncIterator[GatewayEvent]:
        """Ask, and follow the answer as it is written; see `ModelGateway.stream`."""
        schema = request.schema
        if schema is None or schema.accept is None:
            events = self._call(request)
        else:
            # The service does not know of the check: it would store an answer that is refused here.
            request = replace(request, response_cache=ResponseCacheMode.OFF)
            events = ask_until_valid(self._call, request, schema, _judge_value)
        async with following(events):
            async for event in events:
                yield event

    async def generate(self, request: GenerateRequest) -> Completion:
        """Ask, and wait for the whole answer; see `ModelGateway.generate`."""
        return await completion_of(self.stream(request))

    async def _call(self, request: GenerateRequest) -> AsyncIterator[GatewayEvent]:
        async with following(aiter(self._stub.Generate(_to_proto(request)))) as responses:
            async for response in responses:
                event = _event(response)
                if event is not None:
                    yield event


async def _judge_value(completion: Completion, schema: ResponseSchema) -> Verdict:
    findings = () if schema.accept is None else await schema.accept(completion.value)
    return Verdict(completion.value, tuple(f for f in findings if f.severity is Severity.ERROR))


def _to_proto(request: GenerateRequest) -> pb.GenerateRequest:
    return pb.GenerateRequest(
        request_id=str(uuid.uuid4()),
        prompt=pb.Prompt(
            system=request.system or "",
            messages=[
                pb.ChatMessage(role=_ROLES[message.role], parts=[pb.ContentPart(text=message.content)])
                for message in request.messages
            ],
        ),
        options=pb.GenerationOptions(
            model=request.model or "",
            max_output_tokens=request.max_output_tokens,
            temperature=request.temperature,
            seed=request.seed,
            response_cache=_RESPONSE_CACHE_MODES[request.response_cache],
        ),
        schema=None if request.schema is None else _schema(request.schema),
    )


def _schema(schema: ResponseSchema) -> pb.ResponseSchema:
    return pb.ResponseSchema(name=schema.name, document=json.dumps(dict(schema.document)).encode())


def _event(response: pb.GenerateResponse) -> GatewayEvent | None:
    """The event of a response; None for one that a newer server knows and this client does not."""
    match response.WhichOneof("event"):
        case "text_delta":
            return TextDelta(response.text_delta)
        case "repairing":
            repairing = response.repairing
            return Repairing(_findings(repairing.findings), _usage(repairing.usage), repairing.calls)
        case "completed":
            return Completed(_completion(response.completed))
        case _:
            return None


def _completion(completion: pb.Completion) -> Completion:
    return Completion(
        text=completion.text,
        value=_value(completion.value) if completion.HasField("value") else None,
        usage=_usage(completion.usage),
        stop_reason=_STOP_REASONS.get(completion.stop_reason, StopReason.OTHER),
        model=completion.model,
        provider=completion.provider,
        repaired=completion.repaired,
        findings=_findings(completion.findings),
        calls=completion.calls,
        from_response_cache=completion.from_response_cache,
        schema_report=_schema_report(completion.schema_report)
        if completion.HasField("schema_report")
        else None,
    )


def _schema_report(report: pb.SchemaReport) -> SchemaReport | None:
    """What became of the schema; None when a newer server used a method that this client does not know."""
    method = _SCHEMA_METHODS.get(report.method)
    return None if method is None else SchemaReport(method, _findings(report.dropped))


def _usage(usage: common.TokenUsage) -> Usage:
    return Usage(usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens)


def _value(data: bytes) -> object:
    try:
        return sim.parse(data)
    except SpecError:
        raise UnavailableError(
            "The gateway service sent a value that is not JSON", code="GATEWAY_MALFORMED"
        ) from None


def _findings(findings: Iterable[common.Finding]) -> tuple[Finding, ...]:
    return tuple(
        Finding(
            finding.code,
            finding.path,
            finding.message,
            Severity.WARNING if finding.severity == common.SEVERITY_WARNING else Severity.ERROR,
        )
        for finding in findings
    )
