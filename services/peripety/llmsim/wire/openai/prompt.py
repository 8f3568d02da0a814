"""Prompt draft of an OpenAI request: the conversation, and its blocks for counting and caching.

The module also has the parts that both APIs share: credentials, parameter checks by model, cache fields,
and stored responses, which later requests can continue or retrieve.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.llmsim.provider_rules.limits import fingerprint
from peripety.llmsim.provider_rules.models import CacheFamily, count_tokens
from peripety.llmsim.types import ApiError, ApiErrorKind, CacheBreakpoint, CacheSection, SimBlock, SimPrompt
from peripety.llmsim.wire.base import block_cache_key, parse_json
from peripety.llmsim.wire.openai.error_messages import (
    check_bounds,
    invalid_request,
    unsupported_parameter,
    unsupported_value,
)
from peripety.llmsim.wire.request_parser import MessageBuilder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.llmsim.provider_rules.models import SimModel
    from peripety.llmsim.wire.base import HttpCall, SimService
    from peripety.llmsim.wire.request_parser import Fields


CACHE_MEMBERS = ("prompt_cache_key", "prompt_cache_options", "prompt_cache_retention")

_ANY = frozenset(CACHE_MEMBERS)
_MODES = ("implicit", "explicit")
_TTLS = ("30m", "12h")


def read_marker(part: Fields) -> CacheBreakpoint | None:
    """Return the breakpoint on a content part; without a TTL of its own, it has the TTL of the request."""
    breakpoint_ = part.object("prompt_cache_breakpoint", None)
    if breakpoint_ is None:
        return None
    breakpoint_.reject_others("mode", "ttl")
    breakpoint_.choice("mode", ("explicit",))
    return CacheBreakpoint(breakpoint_.choice("ttl", _TTLS, ""))


def read_controls(body: Fields, options: Sequence[str], ttls: Sequence[str]) -> dict[str, Any]:
    """Return the cache controls of a request, as sent.

    Args:
        body: the request.
        options: the members of `prompt_cache_options`.
        ttls: the valid TTLs.
    """
    if _ANY.isdisjoint(body.value):
        return {}
    body.text("prompt_cache_key", None)
    body.choice("prompt_cache_retention", ("in_memory", "24h"), None)
    given = body.object("prompt_cache_options", None)
    if given is not None:
        given.reject_others(*options)
        given.choice("mode", _MODES, None)
        given.choice("ttl", ttls, None)
        given.text("comparison_response_id", None)
        given.flag("prewarm", None)
    return {name: body.value[name] for name in CACHE_MEMBERS if body.value.get(name) is not None}


def read_credential(call: HttpCall) -> str:
    """Return the bearer token, or the key in Azure's header."""
    return call.bearer or call.headers.get("api-key", "")


_SAMPLING: Mapping[str, tuple[float, float, float]] = {
    "temperature": (0, 2, 1),
    "top_p": (0, 1, 1),
    "presence_penalty": (-2, 2, 0),
    "frequency_penalty": (-2, 2, 0),
}
_PROBABILITIES = frozenset({"logprobs", "top_logprobs"})
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


def check_sampling(body: Fields, model: SimModel) -> None:
    """Check sampling parameters: within bounds, and the default if the model has no other."""
    if _PROBABILITIES.isdisjoint(body.value) and _SAMPLING.keys().isdisjoint(body.value):
        return
    for name, (low, high, default) in _SAMPLING.items():
        check_bounds(body, name, low, high)
        value = body.value.get(name)
        if value is not None and value != default and not model.takes.sampling:
            raise unsupported_value(name, value, default)
    check_bounds(body, "top_logprobs", 0, 20, whole=True)
    wanted = body.flag("logprobs", None)
    if wanted or body.value.get("top_logprobs") is not None:
        # Scripted answers have no log probabilities; reasoning models reject them with the same message.
        raise ApiError(ApiErrorKind.PERMISSION, "You are not allowed to request logprobs from this model")


def check_effort(fields: Fields, name: str, model: SimModel) -> str | None:
    """Return the reasoning effort."""
    effort = fields.choice(name, EFFORTS, None)
    if effort is not None and not model.takes.reasoning:
        raise unsupported_parameter(".".join(map(str, fields.path_of(name))))
    if effort == "none" and not model.takes.no_reasoning:
        raise fields.messages.invalid_choice(fields.path_of(name), EFFORTS[1:], effort)
    return effort


def check_output(body: Fields, name: str, model: SimModel) -> int | None:
    """Return the maximum number of output tokens."""
    check_bounds(body, name, 1, whole=True)
    most: int | None = body.value.get(name)
    if most is not None and model.output is not None and most > model.output:
        message = (
            f"{name} is too large: {most}. This model supports at most {model.output} completion tokens, "
            f"whereas you provided {most}."
        )
        raise invalid_request(message, name, "invalid_value")
    return most


def check_caching(prompt: SimPrompt, model: SimModel) -> None:
    """Reject breakpoints for models that are known not to support them."""
    if model.cache.family is CacheFamily.OPENAI_BREAKPOINTS or "*" in model.names:
        return
    if "prompt_cache_options" in prompt.controls:
        raise unsupported_parameter("prompt_cache_options")
    if any(block.marker is not None for block in prompt.blocks):
        raise unsupported_parameter("prompt_cache_breakpoint")


_MESSAGE_TOKENS = 3  # OpenAI's token count for message boundaries
_BREAKPOINT = "prompt_cache_breakpoint"
_INSTRUCTING = ("system", "developer")


class PromptDraft(MessageBuilder):
    """Builder of a conversation with its blocks."""

    def __init__(self) -> None:
        super().__init__()
        self._blocks: list[SimBlock] = []

    def to_prompt(self, settings: Mapping[str, Any], controls: Mapping[str, Any]) -> SimPrompt:
        """Return all blocks as a prompt.

        Args:
            settings: settings whose change invalidates the whole cache; unset ones are left out.
            controls: the cache controls of the request.
        """
        kept = {name: value for name, value in settings.items() if value is not None}
        return SimPrompt(tuple(self._blocks), {CacheSection.TOOLS: block_cache_key(kept)}, controls)

    # ---- what is counted

    def add_tool(self, tool: Mapping[str, Any]) -> None:
        """Add a block for a tool."""
        data = block_cache_key(tool)
        self._blocks.append(SimBlock(CacheSection.TOOLS, "tool", data, count_tokens(data.decode())))

    def add_schema(self, schema: Mapping[str, Any]) -> None:
        """Add a block for the schema of the answer, before the system prompt."""
        data = block_cache_key(schema)
        self._blocks.append(SimBlock(CacheSection.SYSTEM, "json_schema", data, count_tokens(data.decode())))

    def add_block(
        self,
        message: int,
        role: str,
        block: Mapping[str, Any],
        *,
        tokens: int | None = None,
        marker: CacheBreakpoint | None = None,
    ) -> None:
        """Add a block of a message. The first block of each message has additional tokens.

        Args:
            message: the index of the message.
            role: the role.
            block: the content, with its type.
            tokens: its number of tokens; by default that of its JSON.
            marker: the breakpoint on it.
        """
        instructing = role in _INSTRUCTING and not self._messages
        begins = not self._blocks or self._blocks[-1].message != message
        data = block_cache_key({**block, "role": role}, _BREAKPOINT)
        self._blocks.append(
            SimBlock(
                section=CacheSection.SYSTEM if instructing else CacheSection.MESSAGES,
                kind=block["type"],
                content=data,
                tokens=(count_tokens(data.decode()) if tokens is None else tokens) + _MESSAGE_TOKENS * begins,
                marker=marker,
                message=message,
            ),
        )


def parse_arguments(text: str) -> Any:
    """Return the value of tool call arguments; None if they are not JSON, as models may write them."""
    try:
        return parse_json(text.encode())
    except ValueError:
        return None


RESPONSES_TABLE = "responses"

StoredResponse = dict[str, Any]


def response_key(key: str, response_id: str) -> str:
    """Return the storage key of a response; it depends on the API key, so that other keys cannot find it."""
    return f"{fingerprint(key)} {response_id}"


def make_entry(response: dict[str, Any], sent: list[dict[str, Any]]) -> StoredResponse:
    """Return the stored value of a response, with its input items."""
    return {
        "response": response,
        "input": [_list_item(item, response["id"], at) for at, item in enumerate(sent)],
    }


def find_response(service: SimService, key: str, response_id: str) -> StoredResponse:
    """Return a stored response.

    Raises:
        ApiError: the response does not exist.
    """
    _check_id("response_id", response_id)
    kept: StoredResponse | None = service.objects(RESPONSES_TABLE).get(response_key(key, response_id))
    if kept is None:
        raise ApiError(ApiErrorKind.NOT_FOUND, f"Response with id '{response_id}' not found.")
    return kept


def delete_response(service: SimService, key: str, response_id: str) -> None:
    """Delete a stored response."""
    service.objects(RESPONSES_TABLE).put(response_key(key, response_id), None)


def list_items(stored: StoredResponse) -> dict[str, Any]:
    """Return the input items of a response as a list of one page, newest first."""
    sent = stored["input"][::-1]
    ids = [item["id"] for item in sent]
    return {
        "object": "list",
        "data": sent,
        "first_id": ids[0] if ids else None,
        "last_id": ids[-1] if ids else None,
        "has_more": False,
    }


def conversation_items(service: SimService, key: str, response_id: str) -> list[dict[str, Any]]:
    """Return all items up to a response, including its own, oldest first.

    Raises:
        ApiError: the response, or an earlier one, does not exist.
    """
    _check_id("previous_response_id", response_id)
    table = service.objects(RESPONSES_TABLE)
    turns: list[list[dict[str, Any]]] = []
    at: str | None = response_id
    while at is not None:
        kept: StoredResponse | None = table.get(response_key(key, at))
        if kept is None:
            message = f"Previous response with id '{at}' not found."
            raise invalid_request(message, "previous_response_id", "previous_response_not_found")
        turns.append([*kept["input"], *kept["response"]["output"]])
        at = kept["response"]["previous_response_id"]
    return [item for turn in reversed(turns) for item in turn]


def _check_id(name: str, response_id: str) -> None:
    if not response_id.startswith("resp"):
        message = f"Invalid '{name}': '{response_id}'. Expected an ID that begins with 'resp'."
        raise invalid_request(message, name, "invalid_value")


def _list_item(item: dict[str, Any], response_id: str, at: int) -> dict[str, Any]:
    """Return an item as listed: with an id and a status, and message content in parts."""
    own = {"id": f"item_{response_id.removeprefix('resp_')}{at:02}", "status": "completed"}
    shown = own | {name: value for name, value in item.items() if value is not None}
    if isinstance(item.get("content"), str):
        kind = "output_text" if item["role"] == "assistant" else "input_text"
        shown["content"] = [{"type": kind, "text": item["content"]}]
    return shown
