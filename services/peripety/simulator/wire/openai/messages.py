"""Chat message parser, for the format that many providers share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.simulator.model import ToolCall, ToolResult
from peripety.simulator.truth.tokens import count
from peripety.simulator.wire.openai.caching import marker
from peripety.simulator.wire.openai.prompt import arguments
from peripety.simulator.wire.openai.wording import invalid, sized, unsupported
from peripety.simulator.wire.reading import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.simulator.model import ApiError
    from peripety.simulator.wire.openai.prompt import Draft
    from peripety.simulator.wire.reading import Fields

__all__ = ["Messages"]

_TEXT = ("text",)
_ANSWER = ("text", "refusal")
_ANYTHING = ("text", "image_url", "input_audio", "file")
_DETAILS = ("auto", "low", "high", "original")
_IMAGE_TOKENS = {"low": 85}
_USUAL_IMAGE_TOKENS = 765


class Messages:
    """Parser of messages into a draft.

    Args:
        draft: the conversation to extend.
    """

    roles: Sequence[str] = ("system", "assistant", "user", "tool", "developer")
    # The last one is a member of the SDK, which sends back its parsed value; the API accepts it.
    assistant_members: Sequence[str] = (
        "role", "content", "name", "refusal", "tool_calls", "function_call", "audio", "annotations", "parsed",
    )  # fmt: skip

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self._called: dict[str, str] = {}  # tool names by call id, for the last answer
        self._awaited: list[str] = []

    def read(self, body: Fields) -> None:
        """Parse all messages of a request."""
        messages = body.objects("messages")
        sized(body.at("messages"), messages, 1, 2**31)
        for at, message in enumerate(messages):
            role = message.choice("role", self.roles)
            if self._awaited and role != "tool":
                raise self.unanswered(self._awaited)
            if role == "assistant":
                self.read_answer(at, message)
            elif role == "tool":
                self._read_result(at, message)
            elif role == "user":
                message.only("role", "content", "name")
                self.draft.ask(self._content(at, message, role, _ANYTHING))
            else:
                message.only("role", "content", "name")
                self.draft.instruct(self._content(at, message, role, _TEXT))
        if self._awaited:
            raise self.unanswered(self._awaited)

    # ---- errors and hooks of compatible APIs

    def unanswered(self, ids: Sequence[str]) -> ApiError:
        """Return the error for tool calls without results."""
        return invalid(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            "'tool_call_id'. The following tool_call_ids did not have response messages: " + ", ".join(ids),
            "messages",
        )

    def orphaned(self, at: int) -> ApiError:
        """Return the error for a result without a call."""
        return invalid(
            "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
            "'tool_calls'.",
            f"messages.[{at}].role",
        )

    def answering_nothing(self, at: int, call_id: str) -> ApiError:
        """Return the error for a result of an unknown call."""
        return invalid(
            f"Invalid parameter: 'tool_call_id' of '{call_id}' not found in 'tool_calls' of previous "
            "message.",
            f"messages.[{at}].tool_call_id",
        )

    def also_read(self, at: int, message: Fields, *, calling: bool) -> None:
        """Parse members of a model message that only some APIs have, before its content."""

    # ---- the roles

    def read_answer(self, at: int, message: Fields) -> None:
        """Parse a model message."""
        message.only(*self.assistant_members)
        for name in ("function_call", "audio"):
            if message.value.get(name) is not None:
                raise unsupported(f"messages[{at}].{name}")
        calls = message.objects("tool_calls", None)
        refusal = message.text("refusal", None)
        required = not calls and refusal is None
        self.also_read(at, message, calling=bool(calls))
        text = self._content(at, message, "assistant", _ANSWER, required=required)
        if refusal:
            self.draft.add(at, "assistant", {"type": "refusal", "refusal": refusal}, tokens=count(refusal))
        self.draft.answer(text or refusal or "")
        self._called = {}
        for call in calls:
            self._read_call(at, call)
        self._awaited = list(self._called)

    def _read_call(self, at: int, call: Fields) -> None:
        call.only("id", "type", "function", "index")
        call_id = call.text("id")
        call.choice("type", ("function",))
        function = call.object("function")
        function.only("name", "arguments", "parsed_arguments")
        name, written = function.text("name"), function.text("arguments")
        self._called[call_id] = name
        self.draft.call(ToolCall(name, arguments(written), call_id))
        block = {"type": "function", "name": name, "arguments": written, "id": call_id}
        self.draft.add(at, "assistant", block, tokens=count(name) + count(written))

    def _read_result(self, at: int, message: Fields) -> None:
        message.only("role", "content", "tool_call_id", "name")
        call_id = message.text("tool_call_id")
        if not self._called:
            raise self.orphaned(at)
        if call_id not in self._called:
            raise self.answering_nothing(at, call_id)
        if call_id in self._awaited:
            self._awaited.remove(call_id)
        text = self._content(at, message, "tool", _TEXT)
        self.draft.result(ToolResult(text, call_id, self._called[call_id]))

    # ---- content

    def _content(
        self, at: int, message: Fields, role: str, types: Sequence[str], *, required: bool = True
    ) -> str:
        """Add the blocks of a message's content, and return its text."""
        if required:
            value = message.get("content", Kind.STRING, Kind.ARRAY)
        else:
            value = message.get("content", Kind.STRING, Kind.ARRAY, default=None)
        extra = {"tool_call_id": message.value["tool_call_id"]} if role == "tool" else {}
        if value is None:
            return ""
        if isinstance(value, str):
            if value or role != "assistant":
                self.draft.add(at, role, {"type": "text", "text": value, **extra}, tokens=count(value))
            return value
        sized(message.at("content"), value, 1, 2**31)
        texts = []
        for part in message.objects("content"):
            kind = part.choice("type", types)
            part.only("type", kind, "prompt_cache_breakpoint")
            if kind in _ANSWER:
                text = part.text(kind)
                texts.append(text)
                tokens: int | None = count(text)
            else:
                tokens = _media_tokens(part, kind)
            self.draft.add(at, role, {**part.value, **extra}, tokens=tokens, marker=marker(part))
        return "\n".join(texts)


def _media_tokens(part: Fields, kind: str) -> int | None:
    inner = part.object(kind)
    if kind != "image_url":
        return None
    inner.text("url")
    return _IMAGE_TOKENS.get(inner.choice("detail", _DETAILS, "auto"), _USUAL_IMAGE_TOKENS)
