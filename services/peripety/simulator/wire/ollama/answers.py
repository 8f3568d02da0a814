"""Ollama answers: JSON lines, the last of which has the durations."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from peripety.simulator.model import Frame, Reasoning, Stop, Tag, ToolUse
from peripety.simulator.truth import tokens
from peripety.simulator.wire.ollama.json_lines import line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from peripety.simulator.model import Part, Reply

__all__ = ["document", "frames"]

# Reported durations in nanoseconds, as on a machine of constant speed.
LOADING = 50_000_000
READING = 100_000
WRITING = 10_000_000


def _chat(said: Mapping[str, Any]) -> dict[str, Any]:
    return {"message": {"role": "assistant", "content": "", **said}}


def _generate(said: Mapping[str, Any]) -> dict[str, Any]:
    return {"response": said.get("content", ""), **{name: v for name, v in said.items() if name != "content"}}


# Content members of the two operations.
_FORMS: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {"chat": _chat, "generate": _generate}


def document(reply: Reply, form: str, loading: str | None) -> dict[str, Any]:
    """Return a complete answer.

    Args:
        reply: the answer.
        form: the operation.
        loading: without a prompt, whether the model is loaded or unloaded.
    """
    if loading is not None:
        return {**_head(reply), **_FORMS[form]({}), "done": True, "done_reason": loading}
    calls = [_call(part) for part in reply.parts if isinstance(part, ToolUse)]
    thinking = "".join(part.text for part in reply.parts if isinstance(part, Reasoning))
    text = "".join(part.text for part in reply.parts if not isinstance(part, Reasoning | ToolUse))
    said: dict[str, Any] = {"content": text}
    if thinking:
        said["thinking"] = thinking
    if calls:
        said["tool_calls"] = calls
    return {**_head(reply), **_FORMS[form](said), **_end(reply)}


def frames(reply: Reply, form: str, loading: str | None) -> Iterator[Frame[bytes]]:
    """Yield the same answer as lines."""
    if loading is not None:
        yield _line(document(reply, form, loading), Tag.END)
        return
    head = _head(reply)
    for part in reply.parts:
        for tag, said, count in _said(part):
            yield _line({**head, **_FORMS[form](said), "done": False}, tag, count)
    yield _line({**head, **_FORMS[form]({}), **_end(reply)}, Tag.END)


def _line(value: Mapping[str, Any], tag: Tag, count: int = 0) -> Frame[bytes]:
    return Frame(line(value), tag, count)


def _said(part: Part) -> Iterator[tuple[Tag, dict[str, Any], int]]:
    """Yield the content of each line; a tool call is one line."""
    if isinstance(part, ToolUse):
        weight = tokens.count(part.name) + tokens.count(part.json)
        yield Tag.ARGUMENTS, {"tool_calls": [_call(part)]}, weight
        return
    tag, name = (Tag.REASONING, "thinking") if isinstance(part, Reasoning) else (Tag.TEXT, "content")
    for piece, count in zip(part.pieces, tokens.shares(part.pieces), strict=True):
        yield tag, {name: piece}, count


def _call(part: ToolUse) -> dict[str, Any]:
    return {"function": {"name": part.name, "arguments": part.input}}


def _head(reply: Reply) -> dict[str, Any]:
    created = datetime.fromtimestamp(reply.created, UTC)
    return {"model": reply.model, "created_at": created.strftime("%Y-%m-%dT%H:%M:%S.%fZ")}


def _end(reply: Reply) -> dict[str, Any]:
    read, written = reply.usage.input, reply.usage.output
    return {
        "done": True,
        "done_reason": "length" if reply.stop is Stop.LENGTH else "stop",
        "total_duration": LOADING + READING * read + WRITING * written,
        "load_duration": LOADING,
        "prompt_eval_count": read,
        "prompt_eval_duration": READING * read,
        "eval_count": written,
        "eval_duration": WRITING * written,
    }
