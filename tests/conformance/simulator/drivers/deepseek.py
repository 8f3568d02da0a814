"""DeepSeek through `openai`, as its documentation recommends."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from conformance.simulator.drivers.openai_chat import OpenAiChat
from conformance.simulator.observation import Raised

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.simulator.cases import Question
    from conformance.simulator.observation import Observation

__all__ = ["DeepSeek"]


class DeepSeek(OpenAiChat):
    """DeepSeek's Chat Completions: JSON can be requested, but not with a schema."""

    name = "DeepSeek"
    raises: Mapping[str, Raised] = {
        **{kind: Raised(each.name, each.status) for kind, each in OpenAiChat.raises.items()},
        "out_of_credits": Raised("APIStatusError", 402),
    }
    gaps: Mapping[str, str] = {
        "empty_body": OpenAiChat.gaps["empty_body"],
        "missing_end": OpenAiChat.gaps["missing_end"],
        "error_in_stream": "a stream that ends for lack of machines has a finish reason, which the SDK "
        "passes on",
    }
    lacks: Mapping[str, str] = {}

    model = "deepseek-flash"
    prefix = ""

    def ask(self, question: Question, seen: Observation, *, stream: bool) -> None:
        super().ask(question, seen, stream=stream)
        _read(question, seen)

    async def ask_async(self, question: Question, seen: Observation, *, stream: bool) -> None:
        await super().ask_async(question, seen, stream=stream)
        _read(question, seen)

    def members(self, question: Question) -> dict[str, Any]:
        members = super().members(question)
        members["messages"].insert(0, {"role": "system", "content": "Answers are prose or JSON."})
        members["max_tokens"] = members.pop("max_completion_tokens")
        if question.structured:
            members["response_format"] = {"type": "json_object"}
        thinking = "enabled" if question.reasoning else "disabled"
        return {**members, "extra_body": {"thinking": {"type": thinking}}}


def _read(question: Question, seen: Observation) -> None:
    """Read JSON as its user has to: without a schema the SDK does not."""
    if question.structured:
        seen.parsed = json.loads(seen.text)
