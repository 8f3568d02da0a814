"""Wire of DeepSeek's API."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from peripety.simulator.model import Api, ErrorKind, Tag
from peripety.simulator.wire import sse
from peripety.simulator.wire.base import Document, Operation, Route, Wire
from peripety.simulator.wire.deepseek import reading
from peripety.simulator.wire.deepseek.wording import shape
from peripety.simulator.wire.deepseek.writing import Thoughts
from peripety.simulator.wire.json_text import compact
from peripety.simulator.wire.openai import answers
from peripety.simulator.wire.openai.models import list_models

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.simulator.model import ApiError, Block, Frame, Reply, Request
    from peripety.simulator.truth.limits import Allowance
    from peripety.simulator.wire.base import Call, Service

__all__ = ["DeepSeek"]

_EXHAUSTED = (ErrorKind.OVERLOADED, ErrorKind.UNAVAILABLE)


class DeepSeek(Wire):
    """`/chat/completions` and `/models`; the model name distinguishes the first from OpenAI's path."""

    api = Api.DEEPSEEK
    routes = (
        Route("POST", "/chat/completions", Operation.GENERATE, "completion"),
        Route("POST", "/v1/chat/completions", Operation.GENERATE, "completion"),
        Route("GET", "/models", Operation.OTHER, "models"),
    )

    def media_type(self, request: Request) -> str:  # noqa: ARG002
        """Return the type of server-sent events."""
        return "text/event-stream; charset=utf-8"

    def request(self, call: Call, service: Service) -> Request:  # noqa: ARG002
        """Parse a chat completion request."""
        return reading.read(call)

    def document(self, request: Request, reply: Reply) -> Any:
        """Return a `chat.completion`."""
        return Thoughts(request, reply).document()

    def frames(self, request: Request, reply: Reply) -> Sequence[Frame[bytes]]:
        """Return the chunks and `[DONE]`."""
        return tuple(Thoughts(request, reply).frames())

    def headers(self, request_id: str, allowance: Allowance | None, now: float) -> Mapping[str, str]:  # noqa: ARG002
        """Return the request id. The limits apply to concurrent requests and are not reported."""
        return {"x-ds-trace-id": request_id}

    def error(self, error: ApiError, request_id: str, now: float) -> Document:  # noqa: ARG002
        """Return an error response, always without a retry hint."""
        looks = shape(error)
        return Document(looks.status, compact({"error": _details(error)}))

    def error_frame(self, error: ApiError, request_id: str, sent: Sequence[Frame[bytes]]) -> bytes:  # noqa: ARG002
        """Return an error inside a stream; an overload error becomes a finish reason."""
        begun = next((frame for frame in sent if frame.tag is Tag.START), None)
        if error.kind not in _EXHAUSTED or begun is None:
            return sse.event(compact({"error": _details(error)}))
        chunk = json.loads(begun.data.partition(b"data: ")[2])
        chunk["choices"] = [
            {"index": 0, "delta": {}, "logprobs": None, "finish_reason": "insufficient_system_resource"}
        ]
        return sse.event(compact(chunk)) + sse.event(b"[DONE]")

    def repeated(self, request: Request, reply: Reply) -> Sequence[Block]:
        """Return the answer as the client repeats it; the provider caches it with the prompt."""
        at = max((block.message for block in request.prompt.blocks), default=-1) + 1
        return reading.repeated(Thoughts(request, reply).message(), at)

    def other(self, call: Call, service: Service) -> Document:  # noqa: ARG002
        """Return the list of models."""
        return list_models(service.models(self.api), "deepseek")


def _details(error: ApiError) -> dict[str, Any]:
    return {**answers.details(error, shape(error)), "param": None}
