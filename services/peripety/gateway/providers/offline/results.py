"""Results of the actions that were executed before the narration, merged into its facts.

the result of an action   {"accepted": BOOLEAN, changes, log, "world": {event, changes, log, status}?}
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from peripety.gateway.model import ToolResult
from peripety.gateway.providers.offline.words import ACTION, name_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from peripety.gateway.model import GenerateRequest, ToolCall

__all__ = ["with_calls"]


def with_calls(facts: Mapping[str, Any], request: GenerateRequest) -> dict[str, Any]:
    """Return the facts of a turn, with the effects of its narrator's calls."""
    told: dict[str, Any] = dict(facts)
    names = {tool.name: name_of(tool) for tool in request.tools}
    for call, result in _accepted(request):
        action = {
            "id": call.name.removeprefix(ACTION),
            "name": names.get(call.name),
            "params": json.loads(call.arguments),
        }
        told["actions"] = [*told["actions"], action]
        for part in (result, result.get("world") or {}):
            # A text that was truncated contains a truncation mark.
            told["changes"] = [*told["changes"], *(one for one in part.get("changes", ()) if "path" in one)]
            told["log"] = [*told.get("log", ()), *part.get("log", ())]
            told |= {key: part[key] for key in ("event", "status") if key in part}
    return told


def _accepted(request: GenerateRequest) -> Iterator[tuple[ToolCall, dict[str, Any]]]:
    calls = {call.call_id: call for message in request.messages for call in message.tool_calls}
    for message in request.messages:
        for part in message.parts:
            if isinstance(part, ToolResult) and not part.is_error and part.call_id in calls:
                result = json.loads(part.text)
                if result.get("accepted"):
                    yield calls[part.call_id], result
