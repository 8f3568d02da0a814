"""Wire of Anthropic's Messages API, in both of its versions: operations and cache diagnostics.

The diagnostics report what changed since an earlier request and invalidated the cache.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Self

from peripety.llmsim.provider_rules.limits import fingerprint
from peripety.llmsim.types import Api, CacheSection, SimRequest
from peripety.llmsim.wire.anthropic.errors import (
    error_document,
    error_value,
    invalid_request,
    rate_limit_headers,
)
from peripety.llmsim.wire.anthropic.messages import thread_finder, thread_updates
from peripety.llmsim.wire.anthropic.request_parser import VERSIONS, read_body
from peripety.llmsim.wire.anthropic.response_writer import (
    message_frames,
    message_value,
    model_page,
    model_value,
)
from peripety.llmsim.wire.base import HttpDocument, Route, Wire, WireOperation, compact_json, sse_event

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from peripety.llmsim.provider_rules.limits import RateAllowance
    from peripety.llmsim.types import ApiError, SimBlock, SimPrompt, SimReply, StreamFrame
    from peripety.llmsim.wire.anthropic.request_parser import MessagesBody
    from peripety.llmsim.wire.base import HttpCall, SimService


DIGEST_BYTES = 16


class CacheChange(StrEnum):
    """Kinds of changes."""

    MODEL = "model_changed"
    TOOLS = "tools_changed"
    SYSTEM = "system_changed"
    MESSAGES = "messages_changed"
    OTHER = "unavailable"  # all settings together
    UNKNOWN = "previous_message_not_found"


@dataclass(frozen=True, slots=True)
class RequestOutline:
    """Fingerprint of a request for comparison with later ones.

    Attributes:
        model: the model and the requested speed.
        tools: a hash of the tools.
        system: a hash of the system prompt.
        messages: a hash of the messages.
        length: number of blocks in the messages.
        settings: a hash of all settings that are part of the cache key.
    """

    model: str
    tools: str
    system: str
    messages: str
    length: int
    settings: str

    @classmethod
    def from_prompt(cls, model: str, prompt: SimPrompt, length: int | None = None) -> Self:
        """Return the outline of a request; with a length, of its first blocks of messages only."""
        sections: dict[CacheSection, list[SimBlock]] = {section: [] for section in CacheSection}
        for block in prompt.blocks:
            sections[block.section].append(block)
        messages = sections[CacheSection.MESSAGES][:length]
        return cls(
            model=model,
            tools=_digest(block.content for block in sections[CacheSection.TOOLS]),
            system=_digest(block.content for block in sections[CacheSection.SYSTEM]),
            messages=_digest(block.content for block in messages),
            length=len(messages),
            settings=_digest(prompt.settings.get(section, b"") for section in CacheSection),
        )

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Return an outline from the value of `to_json`."""
        return cls(**value)

    def to_json(self) -> dict[str, Any]:
        """Return the outline as a JSON value."""
        return asdict(self)

    def first_change(self, model: str, prompt: SimPrompt) -> CacheChange | None:
        """Return the first change of a later request, in the order of the prefix; None if it only adds."""
        now = RequestOutline.from_prompt(model, prompt, self.length)
        compared = (
            (self.model, now.model, CacheChange.MODEL),
            (self.tools, now.tools, CacheChange.TOOLS),
            (self.system, now.system, CacheChange.SYSTEM),
            (self.messages, now.messages, CacheChange.MESSAGES),
            (self.settings, now.settings, CacheChange.OTHER),
        )
        return next((change for before, after, change in compared if before != after), None)


def _digest(parts: Iterable[bytes]) -> str:
    found = blake2b(digest_size=DIGEST_BYTES)
    for part in parts:
        found.update(len(part).to_bytes(8, "big"))
        found.update(part)
    return found.hexdigest()


_TABLE = "anthropic_messages"
# Changes without further details.
_CHANGES_WITHOUT_DETAILS = (CacheChange.OTHER, CacheChange.UNKNOWN)


def diagnose_cache(body: MessagesBody, key: str, service: SimService) -> Mapping[str, Any] | None:
    """Return the change since the named request, and how much of that request was cached.

    None if the caller did not request diagnostics.
    """
    if body.diagnosis is None:
        return None
    previous = body.diagnosis.previous
    if previous is None:
        return {"change": None, "cached": 0}
    row = service.objects(_TABLE).get(_outline_key(key, previous))
    if row is None:
        return {"change": CacheChange.UNKNOWN, "cached": 0}
    change = RequestOutline.from_json(row["outline"]).first_change(
        _model_and_speed(body.model, body.speed),
        body.prompt,
    )
    return {"change": change, "cached": row["cached"]}


def diagnostics_value(request: SimRequest, reply: SimReply) -> dict[str, Any] | None:
    """Return the member `diagnostics` of an answer."""
    found = request.options["diagnosis"]
    if found is None:
        return None
    change: CacheChange | None = found["change"]
    if change is None:
        return {"cache_miss_reason": None}
    reason: dict[str, Any] = {"type": change.value}
    if change not in _CHANGES_WITHOUT_DETAILS:
        reason["cache_missed_input_tokens"] = max(0, found["cached"] - reply.usage.read)
    return {"cache_miss_reason": reason}


def outline_to_store(request: SimRequest, reply: SimReply) -> Mapping[str, Mapping[str, Any]]:
    """Return the data to store for later diagnostics, by the id of the answer."""
    if request.options["diagnosis"] is None:
        return {}
    outline = RequestOutline.from_prompt(
        _model_and_speed(request.model, request.options["speed"]),
        request.prompt,
    )
    cached = reply.usage.read + sum(reply.usage.written.values())
    row = {"outline": outline.to_json(), "cached": cached}
    return {_TABLE: {_outline_key(request.key, f"msg_{reply.id}"): row}}


def _model_and_speed(name: str, speed: str) -> str:
    return f"{name} {speed}"


def _outline_key(key: str, message: str) -> str:
    return f"{fingerprint(key)} {message}"


_COUNT = "count_tokens"
_MODEL = "model"


class AnthropicWire(Wire):
    """`/v1/messages` and related paths."""

    api = Api.ANTHROPIC
    routes: Sequence[Route] = (
        Route("POST", "/v1/messages", WireOperation.GENERATE, "messages"),
        Route("POST", "/v1/messages/count_tokens", WireOperation.OTHER, _COUNT),
        Route("GET", "/v1/models", WireOperation.OTHER, "models"),
        Route("GET", "/v1/models/{model_id}", WireOperation.OTHER, _MODEL),
    )

    def media_type(self, request: SimRequest) -> str:  # noqa: ARG002 - every stream is of one kind
        """Return the type of server-sent events."""
        return "text/event-stream; charset=utf-8"

    def parse_request(self, call: HttpCall, service: SimService) -> SimRequest:
        """Parse a message request."""
        key = _credential(call)
        body = read_body(
            call.body,
            _api_version(call),
            thread_finder(key, service),
            beta=_has_beta_header(call),
        )
        return SimRequest(
            api=self.api,
            model=body.model,
            messages=body.messages,
            system=body.system,
            tools=body.tools,
            prompt=body.prompt,
            key=key,
            conversation=call.conversation,
            max_tokens=body.max_tokens,
            stop=body.stop,
            stream=body.stream,
            reasoning=body.thinking.is_enabled,
            schema=body.schema,
            options={
                "shown": body.thinking.shown,
                "speed": body.speed,
                "diagnosis": diagnose_cache(body, key, service),
                "thread": body.thread,
            },
        )

    def document(self, request: SimRequest, reply: SimReply) -> Any:
        """Return a message."""
        return message_value(reply, **_writer_options(request, reply))

    def frames(self, request: SimRequest, reply: SimReply) -> Sequence[StreamFrame[bytes]]:
        """Return the events that build a message."""
        return list(message_frames(reply, **_writer_options(request, reply)))

    def objects_to_store(self, request: SimRequest, reply: SimReply) -> Mapping[str, Mapping[str, Any]]:
        """Return the data that later requests are compared with or continue from."""
        thread = request.options["thread"]
        held = {} if thread is None else thread_updates(thread, request.key, self.document(request, reply))
        return {**outline_to_store(request, reply), **held}

    def headers(self, request_id: str, allowance: RateAllowance | None, now: float) -> Mapping[str, str]:
        """Return the request id and the remaining rate limits."""
        return rate_limit_headers(request_id, allowance, now)

    def error(self, error: ApiError, request_id: str, now: float) -> HttpDocument:
        """Return an error response."""
        return error_document(error, request_id, now)

    def error_frame(self, error: ApiError, request_id: str, sent: Sequence[StreamFrame[bytes]]) -> bytes:  # noqa: ARG002
        """Return the event `error`."""
        return sse_event(compact_json(error_value(error, request_id)), "error")

    def handle_other(self, call: HttpCall, service: SimService) -> HttpDocument:
        """Count tokens, or return the list of models."""
        version = _api_version(call)
        if call.route.name == _COUNT:
            held = thread_finder(_credential(call), service)
            body = read_body(call.body, version, held, beta=_has_beta_header(call), counting=True)
            return HttpDocument(200, compact_json({"input_tokens": body.prompt.tokens}))
        models = service.models(self.api)
        if call.route.name == _MODEL:
            return HttpDocument(200, compact_json(model_value(models, call.params["model_id"])))
        return HttpDocument(200, compact_json(model_page(models, call.params)))


def _writer_options(request: SimRequest, reply: SimReply) -> dict[str, Any]:
    """Return the options of the response writer."""
    return {
        "shown": request.options["shown"],
        "speed": request.options["speed"],
        "diagnostics": diagnostics_value(request, reply),
    }


def _api_version(call: HttpCall) -> str:
    version = call.headers.get("anthropic-version")
    if version is None:
        raise invalid_request("anthropic-version: header is required")
    if version not in VERSIONS:
        raise invalid_request(f'anthropic-version: "{version}" is not a valid version')
    return version


def _has_beta_header(call: HttpCall) -> bool:
    return bool(call.headers.get("anthropic-beta"))


def _credential(call: HttpCall) -> str:
    """Return the credential. If both headers are set, the older one is used, as by the provider."""
    return call.headers.get("x-api-key") or call.bearer
