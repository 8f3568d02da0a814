"""JSON codec of messages, tools and answers, for storage."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from peripety.errors import Finding, Severity
from peripety.gateway.model import (
    CacheBlock,
    CacheBreakpoint,
    CachePlan,
    CacheTTL,
    ChatMessage,
    ChatRole,
    Completion,
    Part,
    ProviderState,
    Reasoning,
    SchemaMethod,
    SchemaReport,
    StopReason,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    Usage,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = [
    "dumps",
    "read_completion",
    "read_findings",
    "read_message",
    "read_tool",
    "write_completion",
    "write_findings",
    "write_message",
    "write_tool",
]

_KINDS: dict[str, type[Part]] = {
    "text": Text,
    "reasoning": Reasoning,
    "tool_call": ToolCall,
    "tool_result": ToolResult,
    "provider_state": ProviderState,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def dumps(value: Any) -> str:
    """Encode a value as JSON text for a database."""
    # Escaped, because a model may write a lone surrogate, which databases reject as text.
    return json.dumps(value, separators=(",", ":"))


def write_message(message: ChatMessage) -> dict[str, Any]:
    """Encode a message."""
    return {"role": message.role.value, "parts": [_write_part(part) for part in message.parts]}


def read_message(written: Mapping[str, Any]) -> ChatMessage:
    """Decode a message; inverse of `write_message`."""
    return ChatMessage(ChatRole(written["role"]), tuple(map(_read_part, written["parts"])))


def write_tool(tool: Tool) -> dict[str, Any]:
    """Encode a tool."""
    return asdict(tool)


def read_tool(written: Mapping[str, Any]) -> Tool:
    """Decode a tool; inverse of `write_tool`."""
    return Tool(**written)


def write_completion(completion: Completion) -> dict[str, Any]:
    """Encode a completion."""
    report, plan = completion.schema_report, completion.cache_plan
    return {
        "message": write_message(completion.message),
        "value": completion.value,
        "usage": asdict(completion.usage),
        "stop_reason": completion.stop_reason.value,
        "model": completion.model,
        "provider": completion.provider,
        "repaired": completion.repaired,
        "findings": write_findings(completion.findings),
        "calls": completion.calls,
        "from_response_cache": completion.from_response_cache,
        "schema_report": None if report is None else [report.method.value, write_findings(report.dropped)],
        "cost": completion.cost,
        "cache_savings": completion.cache_savings,
        "cache_plan": None if plan is None else _write_plan(plan),
        "conversation_turn": completion.conversation_turn,
    }


def read_completion(written: Mapping[str, Any]) -> Completion:
    """Decode a completion; inverse of `write_completion`."""
    report, plan = written["schema_report"], written["cache_plan"]
    return Completion(
        **{
            **written,
            "message": read_message(written["message"]),
            "usage": Usage(**written["usage"]),
            "stop_reason": StopReason(written["stop_reason"]),
            "findings": read_findings(written["findings"]),
            "schema_report": None
            if report is None
            else SchemaReport(SchemaMethod(report[0]), read_findings(report[1])),
            "cache_plan": None if plan is None else _read_plan(plan),
        }
    )


def write_findings(findings: Sequence[Finding]) -> list[list[str]]:
    """Encode findings."""
    return [[f.code, f.path, f.message, f.severity.name] for f in findings]


def read_findings(written: Sequence[Sequence[str]]) -> tuple[Finding, ...]:
    """Decode findings; inverse of `write_findings`."""
    return tuple(
        Finding(code, path, message, Severity[severity]) for code, path, message, severity in written
    )


def _write_plan(plan: CachePlan) -> dict[str, Any]:
    difference = plan.first_difference
    return {
        "breakpoints": [_write_breakpoint(breakpoint_) for breakpoint_ in plan.breakpoints],
        "predicted_read_tokens": plan.predicted_read_tokens,
        "predicted_write_tokens": plan.predicted_write_tokens,
        "first_difference": None if difference is None else _write_breakpoint(difference),
    }


def _read_plan(written: Mapping[str, Any]) -> CachePlan:
    difference = written["first_difference"]
    return CachePlan(
        tuple(map(_read_breakpoint, written["breakpoints"])),
        written["predicted_read_tokens"],
        written["predicted_write_tokens"],
        None if difference is None else _read_breakpoint(difference),
    )


def _write_breakpoint(breakpoint_: CacheBreakpoint) -> list[Any]:
    return [breakpoint_.block.value, breakpoint_.ttl.value, breakpoint_.message_index]


def _read_breakpoint(written: Sequence[Any]) -> CacheBreakpoint:
    return CacheBreakpoint(CacheBlock(written[0]), CacheTTL(written[1]), written[2])


def _write_part(part: Part) -> dict[str, Any]:
    written = asdict(part)
    if isinstance(part, ProviderState):
        written["data"] = b64encode(part.data).decode()
    return {"kind": _NAMES[type(part)], **written}


def _read_part(written: Mapping[str, Any]) -> Part:
    fields = {name: value for name, value in written.items() if name != "kind"}
    if written["kind"] == "provider_state":
        fields["data"] = b64decode(fields["data"])
    return _KINDS[written["kind"]](**fields)
