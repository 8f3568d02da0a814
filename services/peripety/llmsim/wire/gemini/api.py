"""Wire of the Gemini API: complete and streamed answers, token counts, explicit caches, models.

An explicit cache is content stored under a name, used as a prompt prefix.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from peripety.llmsim.provider_rules.billing import UsageLedger, bill_request, bill_storage
from peripety.llmsim.provider_rules.limits import fingerprint
from peripety.llmsim.provider_rules.models import load_models
from peripety.llmsim.provider_rules.prompt_cache import DEFAULT_CONTENT_TTL, CachedContent, CachedContents
from peripety.llmsim.types import (
    Api,
    ApiError,
    ApiErrorKind,
    BilledUsage,
    FrameTag,
    SimPrompt,
    SimRequest,
    StreamFrame,
)
from peripety.llmsim.wire.base import HttpDocument, Route, Wire, WireOperation, compact_json, sse_event
from peripety.llmsim.wire.gemini import request_parser, response_writer
from peripety.llmsim.wire.gemini.proto_json import read_message
from peripety.llmsim.wire.gemini.request_parser import group_turns, invalid_argument
from peripety.llmsim.wire.gemini.response_writer import error_body, status_code

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from peripety.llmsim.provider_rules.limits import RateAllowance
    from peripety.llmsim.provider_rules.models import SimModel
    from peripety.llmsim.types import SimReply
    from peripety.llmsim.wire.base import HttpCall, SimService


_PAGE_SIZE = 50
_MAX_PAGE_SIZE = 1000


def api_key(call: HttpCall) -> str:
    """Return the API key: from its own header, the query, or a bearer token."""
    return call.headers.get("x-goog-api-key") or call.params.get("key") or call.bearer


def list_page(name: str, items: Sequence[Any], call: HttpCall) -> dict[str, Any]:
    """Return a page of a list, with the token of the next page."""
    size = _read_number(call, "pageSize", _PAGE_SIZE) or _PAGE_SIZE
    begin = _read_number(call, "pageToken", 0)
    end = begin + min(size, _MAX_PAGE_SIZE)
    token = {"nextPageToken": str(end)} if end < len(items) else {}
    return {name: items[begin:end], **token}


def _read_number(call: HttpCall, name: str, default: int) -> int:
    text = call.params.get(name, "")
    if not text:
        return default
    if not (text.isascii() and text.isdigit()):
        raise invalid_argument(f"Invalid value at '{name}' (TYPE_INT32), \"{text}\"", name)
    return int(text)


_MESSAGE = "CachedContent"
_STORED = ("system_instruction", "tools", "tool_config", "contents")
_ID_LENGTH = 32
_LATEST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()


def with_cached_contents(fields: Mapping[str, Any], call: HttpCall, service: SimService) -> Mapping[str, Any]:
    """Return a request with the stored contents that it names before its own.

    Raises:
        ApiError: the contents do not exist, or the request repeats members that are stored with them.
    """
    name = fields.get("cached_content")
    if name is None:
        return fields
    if any(each in fields for each in ("system_instruction", "tools", "tool_config")):
        raise request_parser.invalid_argument(
            "CachedContent can not be used with GenerateContent request setting system_instruction, tools or "
            "tool_config.\n\nProposed fix: move those values to CachedContent from GenerateContent request.",
            "cached_content",
        )
    stored = _contents_table(service).get(name, _owner(call), service.now()).value
    return {**fields, **stored, "contents": [*stored.get("contents", ()), *fields.get("contents", ())]}


def create_content(call: HttpCall, service: SimService) -> dict[str, Any]:
    """Store contents."""
    fields = read_message(_MESSAGE, call.body)
    model = fields.get("model", "").removeprefix("models/")
    if not model:
        raise request_parser.invalid_argument(
            "* CreateCachedContentRequest.model: model is required\n",
            "model",
        )
    request_parser.check_contents(fields, _MESSAGE, required=False)
    request_parser.check_tools(fields, _MESSAGE)
    tokens = SimPrompt(request_parser.prompt_blocks(fields)).tokens
    card = load_models().find(model, Api.GEMINI)
    minimum = card.cache.minimum
    if tokens < minimum:
        raise request_parser.invalid_argument(
            f"Cached content is too small. total_token_count={tokens}, min_total_token_count={minimum}",
        )
    now = service.now()
    value = {name: fields[name] for name in _STORED if name in fields}
    if "display_name" in fields:
        value["display_name"] = fields["display_name"]
    content = CachedContent(
        name=_make_name(call, service),
        owner=_owner(call),
        model=model,
        tokens=tokens,
        created=now,
        updated=now,
        expires=_expiry_time(fields, now),
        value=value,
    )
    _contents_table(service).put(content)
    usage = BilledUsage(tokens)
    UsageLedger(service.objects("bills")).add_request(
        content.owner,
        model,
        usage,
        bill_request(card, usage, now),
    )
    _charge_storage(service, content, content.expires - now)
    return _content_value(content)


def get_content(call: HttpCall, service: SimService) -> dict[str, Any]:
    """Return stored contents."""
    return _content_value(_contents_table(service).get(_name(call), _owner(call), service.now()))


def list_contents(call: HttpCall, service: SimService) -> dict[str, Any]:
    """Return a page of all contents of the key."""
    mine = _contents_table(service).list_for_owner(_owner(call), service.now())
    return list_page("cachedContents", [_content_value(content) for content in mine], call)


def update_content(call: HttpCall, service: SimService) -> dict[str, Any]:
    """Change the expiry time of stored contents, the only member that can be changed."""
    fields = read_message(_MESSAGE, call.body)
    unchangeable = fields.keys() - {"ttl", "expire_time", "name"}
    if unchangeable or not fields.keys() & {"ttl", "expire_time"}:
        raise request_parser.invalid_argument(
            "* UpdateCachedContentRequest.update_mask: only ttl or expire_time can be updated\n",
        )
    now = service.now()
    contents = _contents_table(service)
    before = contents.get(_name(call), _owner(call), now)
    content = contents.set_expiry(before.name, before.owner, now, expires=_expiry_time(fields, now))
    _charge_storage(service, content, content.expires - before.expires)
    return _content_value(content)


def delete_content(call: HttpCall, service: SimService) -> dict[str, Any]:
    """Delete stored contents."""
    contents, now = _contents_table(service), service.now()
    content = contents.get(_name(call), _owner(call), now)
    contents.delete(content.name, content.owner, now)
    _charge_storage(service, content, now - content.expires)
    return {}


def _charge_storage(service: SimService, content: CachedContent, seconds: float) -> None:
    """Charge the owner for storage time in advance, or refund it."""
    charged = bill_storage(
        load_models().find(content.model, Api.GEMINI),
        content.tokens,
        seconds,
        service.now(),
    )
    UsageLedger(service.objects("bills")).add_charge(content.owner, content.model, charged)


def _contents_table(service: SimService) -> CachedContents:
    return CachedContents(service.objects("cachedContents"))


def _owner(call: HttpCall) -> str:
    return fingerprint(api_key(call))


def _name(call: HttpCall) -> str:
    return f"cachedContents/{call.params['id']}"


def _make_name(call: HttpCall, service: SimService) -> str:
    """Return an unused name. The same order of creation gives the same names in every run."""
    taken = service.objects("cachedContents")
    number = 0
    while True:
        seed = f"{_owner(call)} {service.now()} {number} ".encode() + call.body
        name = f"cachedContents/{hashlib.sha256(seed).hexdigest()[:_ID_LENGTH]}"
        if taken.get(name) is None:
            return name
        number += 1


def _expiry_time(fields: Mapping[str, Any], now: float) -> float:
    expires = float(fields.get("expire_time", now + fields.get("ttl", DEFAULT_CONTENT_TTL)))
    if expires <= now:
        raise request_parser.invalid_argument(
            "* CachedContent.expiration: the expiration time must be in the future\n",
        )
    if expires > _LATEST:
        raise request_parser.invalid_argument(
            "* CachedContent.expiration: the expiration time must not be after the year 9999\n",
        )
    return expires


def _content_value(content: CachedContent) -> dict[str, Any]:
    shown = {"displayName": content.value["display_name"]} if "display_name" in content.value else {}
    return {
        "name": content.name,
        "model": f"models/{content.model}",
        **shown,
        "createTime": _timestamp(content.created),
        "updateTime": _timestamp(content.updated),
        "expireTime": _timestamp(content.expires),
        "usageMetadata": {"totalTokenCount": content.tokens},
    }


def _timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


_VERSIONS = ("v1beta", "v1")
_PATHS = (
    ("POST", "models/{model}:generateContent", WireOperation.GENERATE, "generateContent"),
    ("POST", "models/{model}:streamGenerateContent", WireOperation.GENERATE, "streamGenerateContent"),
    ("POST", "models/{model}:countTokens", WireOperation.OTHER, "countTokens"),
    ("GET", "models", WireOperation.OTHER, "models.list"),
    ("GET", "models/{model}", WireOperation.OTHER, "models.get"),
    ("POST", "cachedContents", WireOperation.OTHER, "cachedContents.create"),
    ("GET", "cachedContents", WireOperation.OTHER, "cachedContents.list"),
    ("GET", "cachedContents/{id}", WireOperation.OTHER, "cachedContents.get"),
    ("PATCH", "cachedContents/{id}", WireOperation.OTHER, "cachedContents.update"),
    ("DELETE", "cachedContents/{id}", WireOperation.OTHER, "cachedContents.delete"),
)
_REQUEST = "GenerateContentRequest"


class GeminiWire(Wire):
    """The Gemini API; `v1beta` and `v1` are identical."""

    api = Api.GEMINI
    routes: Sequence[Route] = tuple(
        Route(method, f"/{version}/{path}", operation, name)
        for version in _VERSIONS
        for method, path, operation, name in _PATHS
    )

    def media_type(self, request: SimRequest) -> str:
        """Return the type of server-sent events with `alt=sse`, else of a JSON array."""
        return "text/event-stream" if request.options["sse"] else "application/json"

    def parse_request(self, call: HttpCall, service: SimService) -> SimRequest:
        """Parse a request for content."""
        own = read_message(_REQUEST, call.body)
        request_parser.check_contents(own, _REQUEST)
        fields = with_cached_contents(own, call, service)
        stored = {"cachedContent": own["cached_content"]} if "cached_content" in own else {}
        config = fields.get("generation_config", {})
        model = call.params["model"]
        request_parser.check_tools(fields, _REQUEST)
        request_parser.check_configuration(config, _REQUEST)
        turns = group_turns(fields["contents"])
        request_parser.check_turns(turns)
        takes = load_models().find(model, Api.GEMINI).takes
        request_parser.check_signatures(turns, required=not takes.unsigned_calls)
        return SimRequest(
            api=Api.GEMINI,
            model=model,
            messages=request_parser.to_messages(group_turns(own["contents"])),
            system=request_parser.system_prompt(fields),
            tools=request_parser.declared_functions(fields),
            prompt=SimPrompt(request_parser.prompt_blocks(fields), controls=stored),
            key=api_key(call),
            conversation=call.conversation,
            max_tokens=config.get("max_output_tokens"),
            stop=tuple(config.get("stop_sequences", ())),
            stream=call.route.name == "streamGenerateContent",
            reasoning=request_parser.is_reasoning_enabled(config),
            schema=request_parser.answer_schema(config),
            options={
                "sse": call.params.get("alt") == "sse",
                "thoughts": request_parser.shows_reasoning(config),
            },
        )

    def document(self, request: SimRequest, reply: SimReply) -> Any:
        """Return a complete answer."""
        return response_writer.answer_document(reply, thoughts=request.options["thoughts"])

    def frames(self, request: SimRequest, reply: SimReply) -> Sequence[StreamFrame[bytes]]:
        """Return a stream of documents: events, or the items of an array."""
        chunks = list(response_writer.answer_chunks(reply, thoughts=request.options["thoughts"]))
        if request.options["sse"]:
            return [StreamFrame(_sse_item(each.data), each.tag, each.tokens) for each in chunks]
        items = [
            StreamFrame(_array_item(each.data, first=at == 0), each.tag, each.tokens)
            for at, each in enumerate(chunks)
        ]
        return [*items, StreamFrame(_ARRAY_END, FrameTag.END)]

    def headers(
        self,
        request_id: str,  # noqa: ARG002
        allowance: RateAllowance | None,  # noqa: ARG002
        now: float,  # noqa: ARG002
    ) -> Mapping[str, str]:
        """Return the headers of every answer: neither ids nor limits."""
        return {"vary": "Origin, X-Origin, Referer", "server": "scaffolding on HTTPServer2"}

    def error(self, error: ApiError, request_id: str, now: float) -> HttpDocument:  # noqa: ARG002
        """Return an error response; the retry delay is in its details, not in a header."""
        return HttpDocument(status_code(error), compact_json(error_body(error)))

    def error_frame(self, error: ApiError, request_id: str, sent: Sequence[StreamFrame[bytes]]) -> bytes:  # noqa: ARG002
        """Return an error in place of the next document, in the format of the stream."""
        body = error_body(error)
        if any(frame.data.startswith(_ARRAY) for frame in sent):
            return _array_item(body, first=False) + _ARRAY_END
        return _sse_item(body)

    def handle_other(self, call: HttpCall, service: SimService) -> HttpDocument:
        """Handle token counts, models and explicit caches."""
        return HttpDocument(200, compact_json(_OTHER_OPERATIONS[call.route.name](call, service)))


# ---- streams

_ARRAY, _ARRAY_END = b"[", b"]\r\n"


def _sse_item(document: Any) -> bytes:
    return sse_event(compact_json(document), newline=b"\r\n")


def _array_item(document: Any, *, first: bool) -> bytes:
    return (_ARRAY if first else b",") + compact_json(document) + b"\r\n"


# ---- other operations


def _count_tokens(call: HttpCall, service: SimService) -> dict[str, Any]:
    fields = read_message("CountTokensRequest", call.body)
    whole = fields.get("generate_content_request", fields)
    request_parser.check_contents(whole, "CountTokensRequest")
    request_parser.check_tools(whole, "CountTokensRequest")
    own = SimPrompt(request_parser.prompt_blocks(whole)).tokens
    tokens = SimPrompt(request_parser.prompt_blocks(with_cached_contents(whole, call, service))).tokens
    return {
        "totalTokens": tokens,
        **({"cachedContentTokenCount": tokens - own} if tokens > own else {}),
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": tokens}],
    }


def _list_models(call: HttpCall, service: SimService) -> dict[str, Any]:
    return list_page("models", [_model_value(card) for card in service.models(Api.GEMINI)], call)


def _get_model(call: HttpCall, service: SimService) -> dict[str, Any]:
    name = call.params["model"]
    for card in service.models(Api.GEMINI):
        if card.name == name:
            return _model_value(card)
    message = (
        f"models/{name} is not found for API version v1beta, or is not supported for generateContent. Call "
        "ListModels to see the list of available models and their supported methods."
    )
    raise ApiError(ApiErrorKind.NOT_FOUND, message)


def _model_value(card: SimModel) -> dict[str, Any]:
    limits = {"inputTokenLimit": card.context, "outputTokenLimit": card.output}
    return {
        "name": f"models/{card.name}",
        "version": "001",
        "displayName": card.name.replace("-", " ").title(),
        **{name: limit for name, limit in limits.items() if limit is not None},
        "supportedGenerationMethods": ["generateContent", "countTokens", "createCachedContent"],
        "thinking": card.takes.reasoning,
    }


_OTHER_OPERATIONS: Mapping[str, Callable[[HttpCall, SimService], dict[str, Any]]] = {
    "countTokens": _count_tokens,
    "models.list": _list_models,
    "models.get": _get_model,
    "cachedContents.create": create_content,
    "cachedContents.list": list_contents,
    "cachedContents.get": get_content,
    "cachedContents.update": update_content,
    "cachedContents.delete": delete_content,
}
