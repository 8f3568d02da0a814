"""Request body of an `/api/chat` call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.gateway.model import ToolChoiceMode
from peripety.gateway.providers.ollama.messages import to_messages
from peripety.gateway.providers.refusing import forced_tool, one_call_at_a_time, refuse_inexpressible
from peripety.gateway.providers.schemas import structured
from peripety.gateway.providers.wire import Body
from peripety.gateway.sizes import prompt_tokens
from peripety.gateway.tool_names import to_wire_name

if TYPE_CHECKING:
    from peripety.gateway.model import GenerateRequest, Tool
    from peripety.gateway.providers.base import Call

__all__ = ["to_ollama_body"]

_SMALLEST_CONTEXT = 4096


def to_ollama_body(call: Call) -> Body:
    """Return the body of a streaming call; unset options are omitted.

    Raises:
        InvalidArgumentError: the model does not support an option; the message names it.
    """
    refuse_inexpressible(call, [*forced_tool(call), *one_call_at_a_time(call.request)])
    tools = _offered(call.request)
    # A format applies from the first token on, which would prevent tool calls.
    asked = structured(call, lambda schema: (None if tools else schema.document, ()))
    request = asked.call.request
    system = [{"role": "system", "content": request.system}] if request.system else []
    turns = to_messages(request.messages, system_messages=call.data.traits.system_messages)
    optional = {"tools": tools, "format": asked.told}
    document = {
        "model": call.model,
        "messages": system + turns,
        "stream": True,
        **{name: value for name, value in optional.items() if value},
        "options": _options(call, request),
    }
    return Body(document, asked.report)


def _offered(request: GenerateRequest) -> list[dict[str, Any]]:
    """Return the tools; empty if calls are forbidden, because the API has no other way to forbid them."""
    if request.tool_choice is not None and request.tool_choice.mode is ToolChoiceMode.NONE:
        return []
    return [{"type": "function", "function": _function(tool)} for tool in request.tools]


def _function(tool: Tool) -> dict[str, Any]:
    name = to_wire_name(tool.name)
    return {"name": name, "description": tool.description, "parameters": tool.input_schema}


def _options(call: Call, request: GenerateRequest) -> dict[str, Any]:
    answer = request.max_output_tokens or call.data.default_output_tokens
    options = {
        "num_ctx": _context(call, prompt_tokens(request) + answer),
        "num_predict": answer,
        "temperature": request.temperature if call.data.traits.sampling else None,
        "seed": request.seed,
        "stop": list(request.stop_sequences) or None,
    }
    return {name: value for name, value in options.items() if value is not None}


def _context(call: Call, needed: int) -> int:
    """Return a context size for prompt and answer; the server silently drops the start of a longer prompt.

    It grows by doubling, because the server reloads the model for each new size.
    """
    size = _SMALLEST_CONTEXT
    while size < needed:
        size *= 2
    return min(size, call.data.context_tokens or size)
