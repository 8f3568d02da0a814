"""What a request may use, told before it is sent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from peripety.gateway.calling.counters import Demand
from peripety.gateway.model import ProviderState, ToolCall

if TYPE_CHECKING:
    from peripety.gateway.model import GenerateRequest, Part

__all__ = ["demand_of"]

_BYTES_PER_TOKEN = 3
"""Tokenizers make a token of four bytes of English, and of three of most other scripts."""

_TOKENS_PER_MESSAGE = 8
_USUAL_ANSWER = 4096


def demand_of(request: GenerateRequest, output_limit: int | None) -> Demand:
    """Return the tokens to set aside for a request.

    Args:
        request: the question.
        output_limit: the output tokens that its account has in a minute; an answer whose length was left open
            is taken to fit into them.
    """
    texts = [request.system or ""]
    texts += [_text_of(part) for message in request.messages for part in message.parts]
    texts += [json.dumps([tool.name, tool.description, dict(tool.input_schema)]) for tool in request.tools]
    if request.schema is not None:
        texts.append(json.dumps(dict(request.schema.document)))
    size = sum(len(text.encode(errors="surrogatepass")) for text in texts)
    answer = request.max_output_tokens
    if answer is None:
        answer = _USUAL_ANSWER if output_limit is None else min(_USUAL_ANSWER, output_limit)
    return Demand(-(-size // _BYTES_PER_TOKEN) + _TOKENS_PER_MESSAGE * len(texts), answer)


def _text_of(part: Part) -> str:
    match part:
        case ToolCall():
            return part.name + part.arguments
        case ProviderState():
            return part.data.decode(errors="replace")
        case _:
            return part.text
