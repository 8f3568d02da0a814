"""Wire of the Gemini API: paths and operations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.simulator.model import Api, ApiError, ErrorKind, Frame, Prompt, Request, Tag
from peripety.simulator.truth.models import catalogue
from peripety.simulator.wire.base import Document, Operation, Route, Wire
from peripety.simulator.wire.gemini import answers, caches, checks, requests
from peripety.simulator.wire.gemini.calls import key, page
from peripety.simulator.wire.gemini.errors import error_body, status_code
from peripety.simulator.wire.gemini.proto import read
from peripety.simulator.wire.gemini.turns import turns_of
from peripety.simulator.wire.json_text import compact
from peripety.simulator.wire.sse import event

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from peripety.simulator.model import Reply
    from peripety.simulator.truth.limits import Allowance
    from peripety.simulator.truth.models import Model
    from peripety.simulator.wire.base import Call, Service

__all__ = ["Gemini"]

_VERSIONS = ("v1beta", "v1")
_PATHS = (
    ("POST", "models/{model}:generateContent", Operation.GENERATE, "generateContent"),
    ("POST", "models/{model}:streamGenerateContent", Operation.GENERATE, "streamGenerateContent"),
    ("POST", "models/{model}:countTokens", Operation.OTHER, "countTokens"),
    ("GET", "models", Operation.OTHER, "models.list"),
    ("GET", "models/{model}", Operation.OTHER, "models.get"),
    ("POST", "cachedContents", Operation.OTHER, "cachedContents.create"),
    ("GET", "cachedContents", Operation.OTHER, "cachedContents.list"),
    ("GET", "cachedContents/{id}", Operation.OTHER, "cachedContents.get"),
    ("PATCH", "cachedContents/{id}", Operation.OTHER, "cachedContents.update"),
    ("DELETE", "cachedContents/{id}", Operation.OTHER, "cachedContents.delete"),
)
_REQUEST = "GenerateContentRequest"


class Gemini(Wire):
    """The Gemini API; `v1beta` and `v1` are identical."""

    api = Api.GEMINI
    routes: Sequence[Route] = tuple(
        Route(method, f"/{version}/{path}", operation, name)
        for version in _VERSIONS
        for method, path, operation, name in _PATHS
    )

    def media_type(self, request: Request) -> str:
        """Return the type of server-sent events with `alt=sse`, else of a JSON array."""
        return "text/event-stream" if request.options["sse"] else "application/json"

    def request(self, call: Call, service: Service) -> Request:
        """Parse a request for content."""
        own = read(_REQUEST, call.body)
        checks.check_contents(own, _REQUEST)
        fields = caches.prefixed(own, call, service)
        stored = {"cachedContent": own["cached_content"]} if "cached_content" in own else {}
        config = fields.get("generation_config", {})
        model = call.params["model"]
        checks.check_tools(fields, _REQUEST)
        checks.check_configuration(config, _REQUEST)
        turns = turns_of(fields["contents"])
        checks.check_turns(turns)
        takes = catalogue().find(model, Api.GEMINI).takes
        checks.check_signatures(turns, required=not takes.unsigned_calls)
        return Request(
            api=Api.GEMINI,
            model=model,
            messages=requests.messages(turns_of(own["contents"])),
            system=requests.system(fields),
            tools=requests.tools(fields),
            prompt=Prompt(requests.blocks(fields), controls=stored),
            key=key(call),
            conversation=call.conversation,
            max_tokens=config.get("max_output_tokens"),
            stop=tuple(config.get("stop_sequences", ())),
            stream=call.route.name == "streamGenerateContent",
            reasoning=requests.thinks(config),
            schema=requests.answer_schema(config),
            options={"sse": call.params.get("alt") == "sse", "thoughts": requests.shows_thoughts(config)},
        )

    def document(self, request: Request, reply: Reply) -> Any:
        """Return a complete answer."""
        return answers.document(reply, thoughts=request.options["thoughts"])

    def frames(self, request: Request, reply: Reply) -> Sequence[Frame[bytes]]:
        """Return a stream of documents: events, or the items of an array."""
        chunks = list(answers.chunks(reply, thoughts=request.options["thoughts"]))
        if request.options["sse"]:
            return [Frame(_event(each.data), each.tag, each.tokens) for each in chunks]
        items = [
            Frame(_item(each.data, first=at == 0), each.tag, each.tokens) for at, each in enumerate(chunks)
        ]
        return [*items, Frame(_ARRAY_END, Tag.END)]

    def headers(
        self,
        request_id: str,  # noqa: ARG002
        allowance: Allowance | None,  # noqa: ARG002
        now: float,  # noqa: ARG002
    ) -> Mapping[str, str]:
        """Return the headers of every answer: neither ids nor limits."""
        return {"vary": "Origin, X-Origin, Referer", "server": "scaffolding on HTTPServer2"}

    def error(self, error: ApiError, request_id: str, now: float) -> Document:  # noqa: ARG002
        """Return an error response; the retry delay is in its details, not in a header."""
        return Document(status_code(error), compact(error_body(error)))

    def error_frame(self, error: ApiError, request_id: str, sent: Sequence[Frame[bytes]]) -> bytes:  # noqa: ARG002
        """Return an error in place of the next document, in the format of the stream."""
        body = error_body(error)
        if any(frame.data.startswith(_ARRAY) for frame in sent):
            return _item(body, first=False) + _ARRAY_END
        return _event(body)

    def other(self, call: Call, service: Service) -> Document:
        """Handle token counts, models and explicit caches."""
        return Document(200, compact(_OTHERS[call.route.name](call, service)))


# ---- streams

_ARRAY, _ARRAY_END = b"[", b"]\r\n"


def _event(document: Any) -> bytes:
    return event(compact(document), newline=b"\r\n")


def _item(document: Any, *, first: bool) -> bytes:
    return (_ARRAY if first else b",") + compact(document) + b"\r\n"


# ---- other operations


def _count_tokens(call: Call, service: Service) -> dict[str, Any]:
    fields = read("CountTokensRequest", call.body)
    whole = fields.get("generate_content_request", fields)
    checks.check_contents(whole, "CountTokensRequest")
    checks.check_tools(whole, "CountTokensRequest")
    own = Prompt(requests.blocks(whole)).tokens
    tokens = Prompt(requests.blocks(caches.prefixed(whole, call, service))).tokens
    return {
        "totalTokens": tokens,
        **({"cachedContentTokenCount": tokens - own} if tokens > own else {}),
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": tokens}],
    }


def _list_models(call: Call, service: Service) -> dict[str, Any]:
    return page("models", [_model(card) for card in service.models(Api.GEMINI)], call)


def _get_model(call: Call, service: Service) -> dict[str, Any]:
    name = call.params["model"]
    for card in service.models(Api.GEMINI):
        if card.name == name:
            return _model(card)
    message = (
        f"models/{name} is not found for API version v1beta, or is not supported for generateContent. Call "
        "ListModels to see the list of available models and their supported methods."
    )
    raise ApiError(ErrorKind.NOT_FOUND, message)


def _model(card: Model) -> dict[str, Any]:
    limits = {"inputTokenLimit": card.context, "outputTokenLimit": card.output}
    return {
        "name": f"models/{card.name}",
        "version": "001",
        "displayName": card.name.replace("-", " ").title(),
        **{name: limit for name, limit in limits.items() if limit is not None},
        "supportedGenerationMethods": ["generateContent", "countTokens", "createCachedContent"],
        "thinking": card.takes.reasoning,
    }


_OTHERS: Mapping[str, Callable[[Call, Service], dict[str, Any]]] = {
    "countTokens": _count_tokens,
    "models.list": _list_models,
    "models.get": _get_model,
    "cachedContents.create": caches.create,
    "cachedContents.list": caches.listed,
    "cachedContents.get": caches.get,
    "cachedContents.update": caches.update,
    "cachedContents.delete": caches.delete,
}
