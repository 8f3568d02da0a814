"""JSON codec of messages, tools and answers, for storage."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from peripety.errors import Finding, Severity
from peripety.gateway.types.message import (
    ChatMessage,
    ChatRole,
    Part,
    ProviderState,
    Reasoning,
    Text,
    Tool,
    ToolCall,
    ToolResult,
)
from peripety.gateway.types.request import CacheTTL
from peripety.gateway.types.response import (
    CacheBlock,
    CacheBreakpoint,
    CachePlan,
    Completion,
    SchemaMethod,
    SchemaReport,
    StopReason,
    Usage,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


_KINDS: dict[str, type[Part]] = {
    "text": Text,
    "reasoning": Reasoning,
    "tool_call": ToolCall,
    "tool_result": ToolResult,
    "provider_state": ProviderState,
}
_KIND_NAMES = {kind: name for name, kind in _KINDS.items()}


def to_json_text(value: Any) -> str:
    """Encode a value as JSON text for a database."""
    # Escaped, because a model may write a lone surrogate, which databases reject as text.
    return json.dumps(value, separators=(",", ":"))


def encode_message(message: ChatMessage) -> dict[str, Any]:
    """Encode a message."""
    return {"role": message.role.value, "parts": [_encode_part(part) for part in message.parts]}


def decode_message(written: Mapping[str, Any]) -> ChatMessage:
    """Decode a message; inverse of `encode_message`."""
    return ChatMessage(ChatRole(written["role"]), tuple(map(_decode_part, written["parts"])))


def encode_tool(tool: Tool) -> dict[str, Any]:
    """Encode a tool."""
    return asdict(tool)


def decode_tool(written: Mapping[str, Any]) -> Tool:
    """Decode a tool; inverse of `encode_tool`."""
    return Tool(**written)


def encode_completion(completion: Completion) -> dict[str, Any]:
    """Encode a completion."""
    report, plan = completion.schema_report, completion.cache_plan
    return {
        "message": encode_message(completion.message),
        "value": completion.value,
        "usage": asdict(completion.usage),
        "stop_reason": completion.stop_reason.value,
        "model": completion.model,
        "provider": completion.provider,
        "repaired": completion.repaired,
        "findings": encode_findings(completion.findings),
        "calls": completion.calls,
        "from_response_cache": completion.from_response_cache,
        "schema_report": None if report is None else [report.method.value, encode_findings(report.dropped)],
        "cost": completion.cost,
        "cache_savings": completion.cache_savings,
        "cache_plan": None if plan is None else _encode_plan(plan),
        "conversation_turn": completion.conversation_turn,
    }


def decode_completion(written: Mapping[str, Any]) -> Completion:
    """Decode a completion; inverse of `encode_completion`."""
    report, plan = written["schema_report"], written["cache_plan"]
    return Completion(
        **{
            **written,
            "message": decode_message(written["message"]),
            "usage": Usage(**written["usage"]),
            "stop_reason": StopReason(written["stop_reason"]),
            "findings": decode_findings(written["findings"]),
            "schema_report": None
            if report is None
            else SchemaReport(SchemaMethod(report[0]), decode_findings(report[1])),
            "cache_plan": None if plan is None else _decode_plan(plan),
        },
    )


def encode_findings(findings: Sequence[Finding]) -> list[list[str]]:
    """Encode findings."""
    return [[f.code, f.path, f.message, f.severity.name] for f in findings]


def decode_findings(written: Sequence[Sequence[str]]) -> tuple[Finding, ...]:
    """Decode findings; inverse of `encode_findings`."""
    return tuple(
        Finding(code, path, message, Severity[severity]) for code, path, message, severity in written
    )


def _encode_plan(plan: CachePlan) -> dict[str, Any]:
    difference = plan.first_difference
    return {
        "breakpoints": [_encode_breakpoint(breakpoint_) for breakpoint_ in plan.breakpoints],
        "predicted_read_tokens": plan.predicted_read_tokens,
        "predicted_write_tokens": plan.predicted_write_tokens,
        "first_difference": None if difference is None else _encode_breakpoint(difference),
    }


def _decode_plan(written: Mapping[str, Any]) -> CachePlan:
    difference = written["first_difference"]
    return CachePlan(
        tuple(map(_decode_breakpoint, written["breakpoints"])),
        written["predicted_read_tokens"],
        written["predicted_write_tokens"],
        None if difference is None else _decode_breakpoint(difference),
    )


def _encode_breakpoint(breakpoint_: CacheBreakpoint) -> list[Any]:
    return [breakpoint_.block.value, breakpoint_.ttl.value, breakpoint_.message_index]


def _decode_breakpoint(written: Sequence[Any]) -> CacheBreakpoint:
    return CacheBreakpoint(CacheBlock(written[0]), CacheTTL(written[1]), written[2])


def _encode_part(part: Part) -> dict[str, Any]:
    written = asdict(part)
    if isinstance(part, ProviderState):
        written["data"] = b64encode(part.data).decode()
    return {"kind": _KIND_NAMES[type(part)], **written}


def _decode_part(written: Mapping[str, Any]) -> Part:
    fields = {name: value for name, value in written.items() if name != "kind"}
    if written["kind"] == "provider_state":
        fields["data"] = b64decode(fields["data"])
    return _KINDS[written["kind"]](**fields)
