"""Wire of Anthropic's Messages API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.simulator.model import Api, Request
from peripety.simulator.wire.anthropic.answers import frames, message
from peripety.simulator.wire.anthropic.body import VERSIONS, read_body
from peripety.simulator.wire.anthropic.diagnostics import diagnose, diagnostics, remembered
from peripety.simulator.wire.anthropic.errors import error_document, error_value, headers
from peripety.simulator.wire.anthropic.models import model_page, model_value
from peripety.simulator.wire.anthropic.threads import holding, kept
from peripety.simulator.wire.anthropic.wording import invalid
from peripety.simulator.wire.base import Document, Operation, Route, Wire
from peripety.simulator.wire.json_text import compact
from peripety.simulator.wire.sse import event

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.simulator.model import ApiError, Frame, Reply
    from peripety.simulator.truth.limits import Allowance
    from peripety.simulator.wire.base import Call, Service

__all__ = ["Anthropic"]

_COUNT = "count_tokens"
_MODEL = "model"


class Anthropic(Wire):
    """`/v1/messages` and related paths."""

    api = Api.ANTHROPIC
    routes: Sequence[Route] = (
        Route("POST", "/v1/messages", Operation.GENERATE, "messages"),
        Route("POST", "/v1/messages/count_tokens", Operation.OTHER, _COUNT),
        Route("GET", "/v1/models", Operation.OTHER, "models"),
        Route("GET", "/v1/models/{model_id}", Operation.OTHER, _MODEL),
    )

    def media_type(self, request: Request) -> str:  # noqa: ARG002 - every stream is of one kind
        """Return the type of server-sent events."""
        return "text/event-stream; charset=utf-8"

    def request(self, call: Call, service: Service) -> Request:
        """Parse a message request."""
        key = _key(call)
        body = read_body(call.body, _version(call), holding(key, service), beta=_in_beta(call))
        return Request(
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
            reasoning=body.thinking.on,
            schema=body.schema,
            options={
                "shown": body.thinking.shown,
                "speed": body.speed,
                "diagnosis": diagnose(body, key, service),
                "thread": body.thread,
            },
        )

    def document(self, request: Request, reply: Reply) -> Any:
        """Return a message."""
        return message(reply, **_looks(request, reply))

    def frames(self, request: Request, reply: Reply) -> Sequence[Frame[bytes]]:
        """Return the events that build a message."""
        return list(frames(reply, **_looks(request, reply)))

    def stored(self, request: Request, reply: Reply) -> Mapping[str, Mapping[str, Any]]:
        """Return the data that later requests are compared with or continue from."""
        thread = request.options["thread"]
        held = {} if thread is None else kept(thread, request.key, self.document(request, reply))
        return {**remembered(request, reply), **held}

    def headers(self, request_id: str, allowance: Allowance | None, now: float) -> Mapping[str, str]:
        """Return the request id and the remaining rate limits."""
        return headers(request_id, allowance, now)

    def error(self, error: ApiError, request_id: str, now: float) -> Document:
        """Return an error response."""
        return error_document(error, request_id, now)

    def error_frame(self, error: ApiError, request_id: str, sent: Sequence[Frame[bytes]]) -> bytes:  # noqa: ARG002
        """Return the event `error`."""
        return event(compact(error_value(error, request_id)), "error")

    def other(self, call: Call, service: Service) -> Document:
        """Count tokens, or return the list of models."""
        version = _version(call)
        if call.route.name == _COUNT:
            held = holding(_key(call), service)
            body = read_body(call.body, version, held, beta=_in_beta(call), counting=True)
            return Document(200, compact({"input_tokens": body.prompt.tokens}))
        models = service.models(self.api)
        if call.route.name == _MODEL:
            return Document(200, compact(model_value(models, call.params["model_id"])))
        return Document(200, compact(model_page(models, call.params)))


def _looks(request: Request, reply: Reply) -> dict[str, Any]:
    """Return the options of the response writer."""
    return {
        "shown": request.options["shown"],
        "speed": request.options["speed"],
        "diagnostics": diagnostics(request, reply),
    }


def _version(call: Call) -> str:
    version = call.headers.get("anthropic-version")
    if version is None:
        raise invalid("anthropic-version: header is required")
    if version not in VERSIONS:
        raise invalid(f'anthropic-version: "{version}" is not a valid version')
    return version


def _in_beta(call: Call) -> bool:
    return bool(call.headers.get("anthropic-beta"))


def _key(call: Call) -> str:
    """Return the credential. If both headers are set, the older one is used, as by the provider."""
    return call.headers.get("x-api-key") or call.bearer
