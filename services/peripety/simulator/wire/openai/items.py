"""Item parser of the Responses API: messages, tool calls, tool results and reasoning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.simulator.chance import is_signature
from peripety.simulator.model import ApiError, ErrorKind, ToolCall, ToolResult
from peripety.simulator.truth.tokens import count
from peripety.simulator.wire.openai.caching import marker
from peripety.simulator.wire.openai.prompt import arguments
from peripety.simulator.wire.openai.wording import invalid
from peripety.simulator.wire.reading import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from peripety.simulator.wire.openai.prompt import Draft
    from peripety.simulator.wire.reading import Fields

__all__ = ["Items"]

_ROLES = ("user", "assistant", "system", "developer")
_STATUSES = ("in_progress", "completed", "incomplete")
_INPUT = ("input_text", "input_image", "input_file")
_OUTPUT = ("output_text", "refusal")
_IMAGE_TOKENS = 765
# Items of hosted tools in a history are not checked.
_OPAQUE = (
    "apply_patch_call", "apply_patch_call_output", "code_interpreter_call", "compaction", "computer_call",
    "computer_call_output", "custom_tool_call", "custom_tool_call_output", "file_search_call",
    "image_generation_call", "local_shell_call", "local_shell_call_output", "mcp_approval_request",
    "mcp_approval_response", "mcp_call", "mcp_list_tools", "shell_call", "shell_call_output",
    "tool_search_call", "tool_search_output", "web_search_call",
)  # fmt: skip


class Items:
    """Parser of items into a draft.

    Args:
        draft: the conversation to extend.
    """

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._called: dict[str, str] = {}  # tool names by call id
        self._answered: set[str] = set()
        self._readers: dict[str, Callable[[int, Fields], None]] = {
            "message": self._read_message,
            "function_call": self._read_call,
            "function_call_output": self._read_output,
            "reasoning": self._read_reasoning,
            "item_reference": self._read_reference,
            **dict.fromkeys(_OPAQUE, self._read_opaque),
        }

    def read(self, items: Sequence[Fields]) -> None:
        """Parse all items of a conversation, oldest first."""
        thought: Fields | None = None
        for at, item in enumerate(items):
            kind = _kind(item, self._readers)
            if thought is not None and not _is_models(item, kind):
                raise _without_following(thought)
            thought = item if kind == "reasoning" else None
            self._readers[kind](at, item)
        if thought is not None:
            raise _without_following(thought)
        for call_id in self._called:
            if call_id not in self._answered:
                raise invalid(f"No tool output found for function call {call_id}.", "input")

    def _read_message(self, at: int, item: Fields) -> None:
        item.only("type", "role", "content", "status", "id", "phase")
        role = item.choice("role", _ROLES)
        item.choice("status", _STATUSES, None)
        item.text("id", None)
        assistant = role == "assistant"
        text = self._content(at, item, role, _OUTPUT if assistant else _INPUT)
        if assistant:
            self._draft.answer(text)
        elif role == "user":
            self._draft.ask(text)
        else:
            self._draft.instruct(text)

    def _content(self, at: int, item: Fields, role: str, types: Sequence[str]) -> str:
        value = item.get("content", Kind.STRING, Kind.ARRAY)
        if isinstance(value, str):
            self._draft.add(at, role, {"type": types[0], "text": value}, tokens=count(value))
            return value
        texts = []
        for part in item.objects("content"):
            kind = part.choice("type", types)
            if kind in ("input_text", "output_text", "refusal"):
                member = "refusal" if kind == "refusal" else "text"
                extra = ("annotations", "logprobs") if kind == "output_text" else ()
                part.only("type", member, "prompt_cache_breakpoint", *extra)
                text = part.text(member)
                texts.append(text)
                block = {"type": kind, member: text}
                self._draft.add(at, role, block, tokens=count(text), marker=marker(part))
            else:
                tokens = _IMAGE_TOKENS if kind == "input_image" else None
                self._draft.add(at, role, part.value, tokens=tokens, marker=marker(part))
        return "\n".join(texts)

    def _read_call(self, at: int, item: Fields) -> None:
        item.only("type", "id", "call_id", "name", "arguments", "status", "namespace", "async", "caller")
        item.choice("status", _STATUSES, None)
        call_id, name, written = item.text("call_id"), item.text("name"), item.text("arguments")
        self._called[call_id] = name
        self._draft.call(ToolCall(name, arguments(written), call_id))
        block = {"type": "function_call", "call_id": call_id, "name": name, "arguments": written}
        self._draft.add(at, "assistant", block, tokens=count(name) + count(written))

    def _read_output(self, at: int, item: Fields) -> None:
        item.only("type", "id", "call_id", "output", "status", "name", "namespace", "caller")
        item.choice("status", _STATUSES, None)
        call_id = item.text("call_id")
        if call_id not in self._called:
            raise invalid(f"No tool call found for function call output with call_id {call_id}.", "input")
        self._answered.add(call_id)
        output = item.get("output", Kind.STRING, Kind.ARRAY)
        if isinstance(output, str):
            texts = [output]
        else:
            texts = [
                part.text("text")
                for part in item.objects("output")
                if part.choice("type", _INPUT) == _INPUT[0]
            ]
        text = "\n".join(texts)
        self._draft.result(ToolResult(text, call_id, self._called[call_id]))
        block = {"type": "function_call_output", "call_id": call_id, "output": output}
        tokens = count(text) if isinstance(output, str) else None
        self._draft.add(at, "tool", block, tokens=tokens)

    def _read_reasoning(self, at: int, item: Fields) -> None:
        item.only("type", "id", "summary", "content", "encrypted_content", "status")
        item.choice("status", _STATUSES, None)
        thoughts = item.text("encrypted_content", None)
        if thoughts is not None and not is_signature(thoughts):
            raise invalid(
                f"The encrypted content {thoughts[:4]}...{thoughts[-4:]} could not be verified. Reason: "
                f"Encrypted "
                "content could not be decrypted or parsed.",
                code="invalid_encrypted_content",
            )
        summaries = [part.text("text") for part in item.objects("summary")]
        block = {"type": "reasoning", "id": item.text("id", None), "summary": summaries}
        self._draft.add(at, "assistant", block, tokens=sum(map(count, summaries)))

    def _read_reference(self, at: int, item: Fields) -> None:  # noqa: ARG002
        reference = item.text("id")
        raise ApiError(
            ErrorKind.NOT_FOUND,
            f"Item with id '{reference}' not found. Send the item itself: whole responses are kept, not "
            "single items.",
            param="input",
        )

    def _read_opaque(self, at: int, item: Fields) -> None:
        self._draft.add(at, "assistant", item.value)


def _kind(item: Fields, readers: dict[str, Any]) -> str:
    if "type" not in item and "role" in item:
        return "message"
    return item.choice("type", tuple(readers))


def _is_models(item: Fields, kind: str) -> bool:
    return item.value.get("role") == "assistant" if kind == "message" else not kind.endswith("_output")


def _without_following(item: Fields) -> ApiError:
    return invalid(
        f"Item '{item.value.get('id')}' of type 'reasoning' was provided without its required following "
        "item.",
        "input",
    )
