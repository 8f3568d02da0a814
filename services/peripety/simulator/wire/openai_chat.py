"""Wire of OpenAI's Chat Completions API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.simulator.model import Api
from peripety.simulator.wire import sse
from peripety.simulator.wire.base import Operation, Route, Wire
from peripety.simulator.wire.json_text import compact
from peripety.simulator.wire.openai import answers, chat_reading
from peripety.simulator.wire.openai.chat_writing import Completion
from peripety.simulator.wire.openai.models import list_models, show_model

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.simulator.model import ApiError, Frame, Reply, Request
    from peripety.simulator.truth.limits import Allowance
    from peripety.simulator.wire.base import Call, Document, Service

__all__ = ["OpenAiChat"]

_OWNER = "openai"


class OpenAiChat(Wire):
    """`/v1/chat/completions` and `/v1/models`, as served by OpenAI and Azure."""

    api = Api.OPENAI_CHAT
    routes = (
        *(
            Route("POST", path, Operation.GENERATE, "completion")
            for path in (
                "/v1/chat/completions",
                "/chat/completions",
                "/openai/v1/chat/completions",
                "/openai/deployments/{deployment}/chat/completions",
            )
        ),
        *(Route("GET", path, Operation.OTHER, "models") for path in ("/v1/models", "/openai/v1/models")),
        *(
            Route("GET", path, Operation.OTHER, "model")
            for path in ("/v1/models/{model}", "/openai/v1/models/{model}")
        ),
    )

    def media_type(self, request: Request) -> str:  # noqa: ARG002
        """Return the type of server-sent events."""
        return "text/event-stream; charset=utf-8"

    def request(self, call: Call, service: Service) -> Request:  # noqa: ARG002
        """Parse a chat completion request."""
        return chat_reading.read(call)

    def document(self, request: Request, reply: Reply) -> Any:
        """Return a `chat.completion`."""
        return Completion(request, reply).document()

    def frames(self, request: Request, reply: Reply) -> Sequence[Frame[bytes]]:
        """Return the chunks and `[DONE]`."""
        return tuple(Completion(request, reply).frames())

    def headers(self, request_id: str, allowance: Allowance | None, now: float) -> Mapping[str, str]:  # noqa: ARG002
        """Return the ids and the remaining rate limits."""
        return answers.headers(request_id, allowance)

    def error(self, error: ApiError, request_id: str, now: float) -> Document:  # noqa: ARG002
        """Return an error response."""
        return answers.error_document(error, answers.shape(error), now)

    def error_frame(self, error: ApiError, request_id: str, sent: Sequence[Frame[bytes]]) -> bytes:  # noqa: ARG002
        """Return an error in place of a chunk."""
        return sse.event(compact({"error": answers.details(error, answers.shape(error))}))

    def other(self, call: Call, service: Service) -> Document:
        """Return the list of models, or one of them."""
        models = service.models(self.api)
        if call.route.name == "models":
            return list_models(models, _OWNER)
        return show_model(models, call.params["model"], _OWNER)
