"""DeepSeek request parser: the body of a chat completion."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.simulator.model import Api, Request
from peripety.simulator.truth.tokens import count
from peripety.simulator.wire.deepseek.wording import Wording, invalid
from peripety.simulator.wire.openai.calls import credential
from peripety.simulator.wire.openai.chat_reading import mentions_json, read_stream, stops
from peripety.simulator.wire.openai.messages import Messages
from peripety.simulator.wire.openai.prompt import Draft
from peripety.simulator.wire.openai.tools import NESTED
from peripety.simulator.wire.reading import Fields

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from peripety.simulator.model import ApiError, Block
    from peripety.simulator.wire.base import Call

__all__ = ["read", "repeated"]

_EFFORTS = ("minimal", "low", "medium", "high", "xhigh", "max", "ultra")
_STOPS = 16
_OUTPUT = 393_216
_RANGES = {"temperature": (0, 2), "top_p": (0, 1), "presence_penalty": (-2, 2), "frequency_penalty": (-2, 2)}


class _Messages(Messages):
    """Messages whose reasoning must be sent back with the tool calls that follow it."""

    roles = ("system", "user", "assistant", "tool")

    def __init__(self, draft: Draft, *, thinking: bool) -> None:
        super().__init__(draft)
        self._thinking = thinking

    def unanswered(self, ids: Sequence[str]) -> ApiError:  # noqa: ARG002
        """Return the error for tool calls without results."""
        return invalid(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            "'tool_call_id'. (insufficient tool messages following tool_calls message)"
        )

    def orphaned(self, at: int) -> ApiError:  # noqa: ARG002
        """Return the error for a result without a call."""
        return invalid(
            "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'"
        )

    def answering_nothing(self, at: int, call_id: str) -> ApiError:  # noqa: ARG002
        """Return the error for a result of an unknown call."""
        return self.orphaned(at)

    def also_read(self, at: int, message: Fields, *, calling: bool) -> None:
        """Read reasoning. The model only reads it again if tool calls followed it."""
        thoughts = message.text("reasoning_content", None)
        if not calling:
            return
        if thoughts is None:
            if self._thinking:
                raise invalid("The `reasoning_content` in the thinking mode must be passed back to the API.")
            return
        block = {"type": "reasoning_content", "text": thoughts}
        self.draft.add(at, "assistant", block, tokens=count(thoughts))


def repeated(message: dict[str, Any], at: int) -> tuple[Block, ...]:
    """Return a model message at an index as prompt blocks."""
    draft = Draft()
    _Messages(draft, thinking=False).read_answer(at, Fields(message, ("messages", at), Wording()))
    return draft.prompt({}, {}).blocks


def read(call: Call) -> Request:
    """Parse a chat completion request."""
    body = Fields.parse(call.body, Wording())
    name = body.text("model")
    thinking = _read_thinking(body)
    draft = Draft()
    tools = NESTED.tools(body)
    for tool in body.value.get("tools") or ():
        draft.add_tool(tool)
    _Messages(draft, thinking=thinking).read(body)
    schema = _read_format(body, draft)
    _check_numbers(body, thinking=thinking)
    stream, options = read_stream(body)
    user = body.text("user_id", None)
    prompt = draft.prompt(
        {"response_format": body.value.get("response_format"), "thinking": thinking},
        {} if user is None else {"user_id": user},
    )
    return Request(
        api=Api.DEEPSEEK,
        model=name,
        messages=draft.messages,
        system=draft.system,
        tools=tools,
        prompt=prompt,
        key=credential(call),
        conversation=call.conversation,
        max_tokens=body.value.get("max_tokens"),
        stop=stops(body, _STOPS),
        stream=stream,
        reasoning=thinking,
        schema=schema,
        options=options,
    )


def _read_thinking(body: Fields) -> bool:
    body.choice("reasoning_effort", _EFFORTS, None)
    thinking = body.object("thinking", None)
    return thinking is None or thinking.choice("type", ("enabled", "disabled")) == "enabled"


def _read_format(body: Fields, draft: Draft) -> Mapping[str, Any] | None:
    chosen = body.object("response_format", None)
    kind = "text" if chosen is None else chosen.text("type")
    if kind == "text":
        return None
    if kind != "json_object":
        raise invalid("This response_format type is unavailable now")
    if not mentions_json(draft):
        raise invalid(
            "Prompt must contain the word 'json' in some form to use 'response_format' of type 'json_object'."
        )
    return {}


def _check_numbers(body: Fields, *, thinking: bool) -> None:
    if body.integer("n", None) not in (None, 1):
        raise invalid("Invalid n value (currently only n = 1 is supported)")
    most = body.integer("max_tokens", None)
    if most is not None and not 1 <= most <= _OUTPUT:
        raise invalid(f"Invalid max_tokens value, the valid range of max_tokens is [1, {_OUTPUT}]")
    for name, (low, high) in _RANGES.items():
        value = body.number(name, None)
        # Reasoning models ignore these.
        if value is not None and not thinking and not low <= value <= high:
            raise invalid(f"Invalid {name} value, the valid range of {name} is [{low}, {high}]")
