"""Reader of answers of Ollama: JSON lines, the last of which has `done`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from peripety.simulator.model import Stop, Usage

if TYPE_CHECKING:
    from peripety.simulator.record.readers.draft import Draft

__all__ = ["read"]


def read(value: Any, draft: Draft) -> None:
    """Read one line, or the only document."""
    if "error" in value:
        draft.error = value
        return
    message = value.get("message") or {}
    draft.reasoning(message.get("thinking"))
    draft.text(message.get("content"))
    for call in message.get("tool_calls") or ():
        draft.call(call["function"]["name"], call.get("id") or "")
        draft.arguments(json.dumps(call["function"].get("arguments") or {}, ensure_ascii=False))
    if value.get("done"):
        ended = Stop.TOOL_USE if draft.calls() else Stop.END
        draft.stop = Stop.LENGTH if value.get("done_reason") == "length" else ended
        draft.usage = Usage(fresh=value.get("prompt_eval_count", 0), output=value.get("eval_count", 0))
        draft.ended = True
