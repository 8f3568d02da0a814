"""Wire of OpenAI's Responses API."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from peripety.simulator.model import Api, Tag
from peripety.simulator.wire.base import Operation, Route, Wire
from peripety.simulator.wire.openai import answers, responses_reading, store
from peripety.simulator.wire.openai.calls import credential
from peripety.simulator.wire.openai.responses_writing import Response, event
from peripety.simulator.wire.openai.wording import invalid

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.simulator.model import ApiError, Frame, Reply, Request
    from peripety.simulator.truth.limits import Allowance
    from peripety.simulator.wire.base import Call, Document, Service

__all__ = ["OpenAiResponses"]

_FAILURES = ("rate_limit_exceeded", "server_error")


def _routes(prefix: str) -> tuple[Route, ...]:
    path = f"{prefix}/responses"
    one = f"{path}/{{response_id}}"
    return (
        Route("POST", path, Operation.GENERATE, "response"),
        Route("POST", f"{path}/input_tokens", Operation.OTHER, "input_tokens"),
        Route("GET", one, Operation.OTHER, "retrieve"),
        Route("DELETE", one, Operation.OTHER, "delete"),
        Route("POST", f"{one}/cancel", Operation.OTHER, "cancel"),
        Route("GET", f"{one}/input_items", Operation.OTHER, "input_items"),
    )


class OpenAiResponses(Wire):
    """`/v1/responses`, as served by OpenAI and Azure."""

    api = Api.OPENAI_RESPONSES
    routes = tuple(route for prefix in ("/v1", "", "/openai/v1", "/openai") for route in _routes(prefix))

    def media_type(self, request: Request) -> str:  # noqa: ARG002
        """Return the type of server-sent events."""
        return "text/event-stream; charset=utf-8"

    def request(self, call: Call, service: Service) -> Request:
        """Parse a request for a response, and load the response that it continues."""
        return responses_reading.read(call, service)

    def document(self, request: Request, reply: Reply) -> Any:
        """Return a `response`."""
        return Response(request, reply).document()

    def frames(self, request: Request, reply: Reply) -> Sequence[Frame[bytes]]:
        """Return numbered events."""
        return tuple(Response(request, reply).frames())

    def headers(self, request_id: str, allowance: Allowance | None, now: float) -> Mapping[str, str]:  # noqa: ARG002
        """Return the ids and the remaining rate limits."""
        return answers.headers(request_id, allowance)

    def error(self, error: ApiError, request_id: str, now: float) -> Document:  # noqa: ARG002
        """Return an error response."""
        return answers.error_document(error, answers.shape(error), now)

    def error_frame(self, error: ApiError, request_id: str, sent: Sequence[Frame[bytes]]) -> bytes:  # noqa: ARG002
        """Return the error, and the failed response if it has started.

        The documentation has the error members beside the event type. The service sends, and the SDK expects,
        an error in a member of its own.
        """
        looks = answers.shape(error)
        told = event("error", len(sent), {"error": answers.details(error, looks)})
        begun = next((frame for frame in sent if frame.tag is Tag.START), None)
        if begun is None:
            return told
        response = json.loads(begun.data.partition(b"data: ")[2])["response"]
        code = looks.code if looks.code in _FAILURES else "server_error"
        failed = {**response, "status": "failed", "error": {"code": code, "message": error.message}}
        return told + event("response.failed", len(sent) + 1, {"response": failed})

    def stored(self, request: Request, reply: Reply) -> Mapping[str, Mapping[str, Any]]:
        """Return the response to store, unless the request disables storage."""
        if not request.options["response"]["store"]:
            return {}
        response = self.document(request, reply)
        kept = store.entry(response, request.options["input"])
        return {store.TABLE: {store.kept_under(request.key, response["id"]): kept}}

    def other(self, call: Call, service: Service) -> Document:
        """Handle stored responses, and the number of input tokens of a request."""
        if call.route.name == "input_tokens":
            tokens = responses_reading.read(call, service).prompt.tokens
            return answers.document({"object": "response.input_tokens", "input_tokens": tokens})
        key, response_id = credential(call), call.params["response_id"]
        kept = store.find(service, key, response_id)
        match call.route.name:
            case "cancel":
                raise invalid("Cannot cancel a synchronous response.")
            case "delete":
                store.delete(service, key, response_id)
                return answers.document({"id": response_id, "object": "response", "deleted": True})
            case "input_items":
                return answers.document(store.items(kept))
            case _:
                return answers.document(kept["response"])
