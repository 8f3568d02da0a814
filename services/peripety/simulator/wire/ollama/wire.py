"""Wire of Ollama's API."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from peripety.simulator.model import Api, ErrorKind
from peripety.simulator.wire.base import Document, Operation, Route, Wire
from peripety.simulator.wire.json_text import compact
from peripety.simulator.wire.ollama.answers import document, frames
from peripety.simulator.wire.ollama.body import read_chat, read_generate, read_model
from peripety.simulator.wire.ollama.json_lines import line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.simulator.model import ApiError, Frame, Reply, Request
    from peripety.simulator.truth.limits import Allowance
    from peripety.simulator.wire.base import Call, Service

__all__ = ["Ollama"]

VERSION = "0.14.0"

_STATUSES = {
    ErrorKind.INVALID_REQUEST: 400,
    ErrorKind.AUTHENTICATION: 401,
    ErrorKind.BILLING: 402,
    ErrorKind.PERMISSION: 403,
    ErrorKind.NOT_FOUND: 404,
    ErrorKind.METHOD_NOT_ALLOWED: 405,
    ErrorKind.CONFLICT: 409,
    ErrorKind.TOO_LARGE: 413,
    ErrorKind.RATE_LIMIT: 429,
    ErrorKind.SERVER: 500,
    ErrorKind.UNAVAILABLE: 503,
    ErrorKind.OVERLOADED: 503,
    ErrorKind.TIMEOUT: 504,
}
_DETAILS = {
    "parent_model": "",
    "format": "gguf",
    "family": "scripted",
    "families": ["scripted"],
    "parameter_size": "0B",
    "quantization_level": "unknown",
}
_CAPABILITIES = ["completion", "tools", "thinking", "vision"]


class Ollama(Wire):
    """`/api/chat`, `/api/generate` and the model endpoints."""

    api = Api.OLLAMA
    routes: Sequence[Route] = (
        Route("POST", "/api/chat", Operation.GENERATE, "chat"),
        Route("POST", "/api/generate", Operation.GENERATE, "generate"),
        Route("POST", "/api/show", Operation.OTHER, "show"),
        Route("GET", "/api/tags", Operation.OTHER, "tags"),
        Route("GET", "/api/ps", Operation.OTHER, "ps"),
        Route("GET", "/api/version", Operation.OTHER, "version"),
    )

    def media_type(self, request: Request) -> str:  # noqa: ARG002 - every stream is of one kind
        """Return the type of JSON lines."""
        return "application/x-ndjson"

    def request(self, call: Call, service: Service) -> Request:  # noqa: ARG002 - nothing is stored here
        """Parse a request for a model answer."""
        read = read_chat if call.route.name == "chat" else read_generate
        return replace(read(call.body), key=call.bearer, conversation=call.conversation)

    def document(self, request: Request, reply: Reply) -> Any:
        """Return the only line of an answer that is not streamed."""
        return document(reply, **request.options)

    def frames(self, request: Request, reply: Reply) -> Sequence[Frame[bytes]]:
        """Return the lines of an answer."""
        return list(frames(reply, **request.options))

    def headers(self, request_id: str, allowance: Allowance | None, now: float) -> Mapping[str, str]:  # noqa: ARG002
        """Return the headers of every answer: neither ids nor limits."""
        return {}

    def error(self, error: ApiError, request_id: str, now: float) -> Document:  # noqa: ARG002
        """Return an error response, without a retry hint."""
        value = {"error": error.message}
        if error.kind is ErrorKind.AUTHENTICATION:
            value["signin_url"] = "https://ollama.com/connect"
        return Document(_STATUSES[error.kind], compact(value))

    def error_frame(self, error: ApiError, request_id: str, sent: Sequence[Frame[bytes]]) -> bytes:  # noqa: ARG002
        """Return a line with the error instead of `done`."""
        return line({"error": error.message})

    def other(self, call: Call, service: Service) -> Document:
        """Handle model information and the version."""
        match call.route.name:
            case "tags":
                models = [_listed(model.name, service.now()) for model in service.models(self.api)]
                value: dict[str, Any] = {"models": models}
            case "show":
                _, name = read_model(call.body)
                value = _shown(name, service.now())
            case "ps":
                value = {"models": []}  # a scripted model uses no memory
            case _:
                value = {"version": VERSION}
        return Document(200, compact(value))


def _listed(name: str, now: float) -> dict[str, Any]:
    return {
        "name": name,
        "model": name,
        "modified_at": _time(now),
        "size": 0,
        "digest": hashlib.sha256(name.encode()).hexdigest(),
        "details": _DETAILS,
    }


def _shown(name: str, now: float) -> dict[str, Any]:
    return {
        "modelfile": f"FROM {name}\n",
        "parameters": "",
        "template": "{{ .Prompt }}",
        "details": _DETAILS,
        "model_info": {"general.architecture": "scripted"},
        "capabilities": _CAPABILITIES,
        "modified_at": _time(now),
    }


def _time(now: float) -> str:
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
