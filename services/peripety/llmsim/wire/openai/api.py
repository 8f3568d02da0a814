"""Wires of OpenAI's Chat Completions and Responses APIs, and the model list."""

from __future__ import annotations

import json
from datetime import UTC, datetime, time
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from peripety.llmsim.types import Api, ApiError, ApiErrorKind, FrameTag
from peripety.llmsim.wire import base
from peripety.llmsim.wire.base import Route, Wire, WireOperation, compact_json
from peripety.llmsim.wire.openai import chat_request, chat_response, prompt, responses_request
from peripety.llmsim.wire.openai.chat_response import ChatCompletion, json_document
from peripety.llmsim.wire.openai.error_messages import invalid_request
from peripety.llmsim.wire.openai.prompt import read_credential
from peripety.llmsim.wire.openai.responses_response import ResponseWriter, response_event

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.llmsim.provider_rules.limits import RateAllowance
    from peripety.llmsim.provider_rules.models import SimModel
    from peripety.llmsim.types import SimReply, SimRequest, StreamFrame
    from peripety.llmsim.wire.base import HttpCall, HttpDocument, SimService


def list_models(models: Sequence[SimModel], owner: str) -> HttpDocument:
    """Return all models of a provider."""
    return json_document(
        {"object": "list", "data": [_model_entry(model, model.name, owner) for model in models]},
    )


def show_model(models: Sequence[SimModel], name: str, owner: str) -> HttpDocument:
    """Return one model.

    Raises:
        ApiError: the model does not exist.
    """
    for model in models:
        if any(fnmatchcase(name, glob) for glob in model.names):
            return json_document(_model_entry(model, name, owner))
    raise ApiError(
        ApiErrorKind.NOT_FOUND,
        f"The model '{name}' does not exist",
        param="model",
        code="model_not_found",
    )


def _model_entry(model: SimModel, name: str, owner: str) -> dict[str, Any]:
    since = 0 if model.released is None else datetime.combine(model.released, time(), UTC).timestamp()
    return {"id": name, "object": "model", "created": int(since), "owned_by": owner}


_OWNER = "openai"


class OpenAiChat(Wire):
    """`/v1/chat/completions` and `/v1/models`, as served by OpenAI and Azure."""

    api = Api.OPENAI_CHAT
    routes = (
        *(
            Route("POST", path, WireOperation.GENERATE, "completion")
            for path in (
                "/v1/chat/completions",
                "/chat/completions",
                "/openai/v1/chat/completions",
                "/openai/deployments/{deployment}/chat/completions",
            )
        ),
        *(Route("GET", path, WireOperation.OTHER, "models") for path in ("/v1/models", "/openai/v1/models")),
        *(
            Route("GET", path, WireOperation.OTHER, "model")
            for path in ("/v1/models/{model}", "/openai/v1/models/{model}")
        ),
    )

    def media_type(self, request: SimRequest) -> str:  # noqa: ARG002
        """Return the type of server-sent events."""
        return "text/event-stream; charset=utf-8"

    def parse_request(self, call: HttpCall, service: SimService) -> SimRequest:  # noqa: ARG002
        """Parse a chat completion request."""
        return chat_request.read_chat_request(call)

    def document(self, request: SimRequest, reply: SimReply) -> Any:
        """Return a `chat.completion`."""
        return ChatCompletion(request, reply).document()

    def frames(self, request: SimRequest, reply: SimReply) -> Sequence[StreamFrame[bytes]]:
        """Return the chunks and `[DONE]`."""
        return tuple(ChatCompletion(request, reply).frames())

    def headers(self, request_id: str, allowance: RateAllowance | None, now: float) -> Mapping[str, str]:  # noqa: ARG002
        """Return the ids and the remaining rate limits."""
        return chat_response.response_headers(request_id, allowance)

    def error(self, error: ApiError, request_id: str, now: float) -> HttpDocument:  # noqa: ARG002
        """Return an error response."""
        return chat_response.error_document(error, chat_response.error_shape(error), now)

    def error_frame(self, error: ApiError, request_id: str, sent: Sequence[StreamFrame[bytes]]) -> bytes:  # noqa: ARG002
        """Return an error in place of a chunk."""
        return base.sse_event(
            compact_json({"error": chat_response.error_details(error, chat_response.error_shape(error))}),
        )

    def handle_other(self, call: HttpCall, service: SimService) -> HttpDocument:
        """Return the list of models, or one of them."""
        models = service.models(self.api)
        if call.route.name == "models":
            return list_models(models, _OWNER)
        return show_model(models, call.params["model"], _OWNER)


_ERROR_CODES = ("rate_limit_exceeded", "server_error")


def _routes(prefix: str) -> tuple[Route, ...]:
    path = f"{prefix}/responses"
    one = f"{path}/{{response_id}}"
    return (
        Route("POST", path, WireOperation.GENERATE, "response"),
        Route("POST", f"{path}/input_tokens", WireOperation.OTHER, "input_tokens"),
        Route("GET", one, WireOperation.OTHER, "retrieve"),
        Route("DELETE", one, WireOperation.OTHER, "delete"),
        Route("POST", f"{one}/cancel", WireOperation.OTHER, "cancel"),
        Route("GET", f"{one}/input_items", WireOperation.OTHER, "input_items"),
    )


class OpenAiResponses(Wire):
    """`/v1/responses`, as served by OpenAI and Azure."""

    api = Api.OPENAI_RESPONSES
    routes = tuple(route for prefix in ("/v1", "", "/openai/v1", "/openai") for route in _routes(prefix))

    def media_type(self, request: SimRequest) -> str:  # noqa: ARG002
        """Return the type of server-sent events."""
        return "text/event-stream; charset=utf-8"

    def parse_request(self, call: HttpCall, service: SimService) -> SimRequest:
        """Parse a request for a response, and load the response that it continues."""
        return responses_request.read_responses_request(call, service)

    def document(self, request: SimRequest, reply: SimReply) -> Any:
        """Return a `response`."""
        return ResponseWriter(request, reply).document()

    def frames(self, request: SimRequest, reply: SimReply) -> Sequence[StreamFrame[bytes]]:
        """Return numbered events."""
        return tuple(ResponseWriter(request, reply).frames())

    def headers(self, request_id: str, allowance: RateAllowance | None, now: float) -> Mapping[str, str]:  # noqa: ARG002
        """Return the ids and the remaining rate limits."""
        return chat_response.response_headers(request_id, allowance)

    def error(self, error: ApiError, request_id: str, now: float) -> HttpDocument:  # noqa: ARG002
        """Return an error response."""
        return chat_response.error_document(error, chat_response.error_shape(error), now)

    def error_frame(self, error: ApiError, request_id: str, sent: Sequence[StreamFrame[bytes]]) -> bytes:  # noqa: ARG002
        """Return the error, and the failed response if it has started.

        The documentation has the error members beside the event type. The service sends, and the SDK expects,
        an error in a member of its own.
        """
        looks = chat_response.error_shape(error)
        told = response_event("error", len(sent), {"error": chat_response.error_details(error, looks)})
        begun = next((frame for frame in sent if frame.tag is FrameTag.START), None)
        if begun is None:
            return told
        response = json.loads(begun.data.partition(b"data: ")[2])["response"]
        code = looks.code if looks.code in _ERROR_CODES else "server_error"
        failed = {**response, "status": "failed", "error": {"code": code, "message": error.message}}
        return told + response_event("response.failed", len(sent) + 1, {"response": failed})

    def objects_to_store(self, request: SimRequest, reply: SimReply) -> Mapping[str, Mapping[str, Any]]:
        """Return the response to store, unless the request disables storage."""
        if not request.options["response"]["store"]:
            return {}
        response = self.document(request, reply)
        kept = prompt.make_entry(response, request.options["input"])
        return {prompt.RESPONSES_TABLE: {prompt.response_key(request.key, response["id"]): kept}}

    def handle_other(self, call: HttpCall, service: SimService) -> HttpDocument:
        """Handle stored responses, and the number of input tokens of a request."""
        if call.route.name == "input_tokens":
            tokens = responses_request.read_responses_request(call, service).prompt.tokens
            return chat_response.json_document({"object": "response.input_tokens", "input_tokens": tokens})
        key, response_id = read_credential(call), call.params["response_id"]
        kept = prompt.find_response(service, key, response_id)
        match call.route.name:
            case "cancel":
                raise invalid_request("Cannot cancel a synchronous response.")
            case "delete":
                prompt.delete_response(service, key, response_id)
                return chat_response.json_document({"id": response_id, "object": "response", "deleted": True})
            case "input_items":
                return chat_response.json_document(prompt.list_items(kept))
            case _:
                return chat_response.json_document(kept["response"])
