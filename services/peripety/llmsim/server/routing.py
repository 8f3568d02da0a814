"""Routing of requests to APIs and operations: one base URL serves every provider."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import unquote

from peripety.llmsim.delivery.http import (
    Delivery,
    ResponseHead,
    document_delivery,
    error_delivery,
    stream_delivery,
)
from peripety.llmsim.delivery.plan import DeliveryPlan, DeliveryStep
from peripety.llmsim.types import Api
from peripety.llmsim.wire.anthropic.api import AnthropicWire
from peripety.llmsim.wire.base import parse_json
from peripety.llmsim.wire.deepseek import DeepSeekWire
from peripety.llmsim.wire.gemini.api import GeminiWire
from peripety.llmsim.wire.ollama.api import OllamaWire
from peripety.llmsim.wire.openai.api import OpenAiChat, OpenAiResponses

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from peripety.llmsim.script_engine import Exchange
    from peripety.llmsim.types import ApiError
    from peripety.llmsim.wire.base import HttpDocument, Route, Wire


def delivery_from_exchange(wire: Wire, exchange: Exchange, now: float) -> Delivery:
    """Return the delivery of an exchange. `now` is by the simulator's clock."""
    request, reply, manner = exchange.request, exchange.reply, exchange.delivery
    headers = wire.headers(exchange.id, exchange.rate_allowance, now)
    if exchange.error is not None:
        return error_delivery(wire, exchange.error, headers, exchange.id, time.time(), manner.delay_ms)
    if reply is None:
        raise ValueError("an exchange needs a reply or an error")
    deliver = stream_delivery if request.stream else document_delivery
    return deliver(wire, request, reply, manner, headers, exchange.id)


def delivery_from_error(wire: Wire, error: ApiError, request_id: str, now: float) -> Delivery:
    """Return the delivery of an error for an invalid request."""
    return error_delivery(wire, error, wire.headers(request_id, None, now), request_id, time.time())


def delivery_from_document(answer: HttpDocument, headers: Mapping[str, str]) -> Delivery:
    """Return the delivery of a document, without delay, with the headers of every answer."""
    head = ResponseHead(answer.status, answer.media_type, {**headers, **answer.headers}, len(answer.body))
    return Delivery(head, DeliveryPlan([DeliveryStep(0, answer.body)]))


T = TypeVar("T")

_APIS_BY_PATH = (
    ("/v1beta", Api.GEMINI),
    ("/api/", Api.OLLAMA),
    ("/v1/messages", Api.ANTHROPIC),
    ("/v1/responses", Api.OPENAI_RESPONSES),
)
_APIS_BY_HEADER = (
    ("anthropic-version", Api.ANTHROPIC),
    ("x-goog-api-key", Api.GEMINI),
    ("x-api-key", Api.ANTHROPIC),
)


@dataclass(frozen=True, slots=True)
class RouteTarget:
    """An operation of an API, with the variables of the path."""

    wire: Wire
    route: Route
    params: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _PathTemplate:
    """A path template. Each variable segment has a name, possibly empty, and a literal suffix."""

    segments: tuple[tuple[str, str], ...]
    target: RouteTarget

    def match(self, segments: Sequence[str]) -> RouteTarget | None:
        params = {}
        for (name, literal), segment in zip(self.segments, segments, strict=True):
            if not name:
                if segment != literal:
                    return None
            elif len(segment) > len(literal) and segment.endswith(literal):
                params[name] = segment.removesuffix(literal)
            else:
                return None
        return RouteTarget(self.target.wire, self.target.route, params)


class Router:
    """Router of the paths of some APIs.

    Args:
        wires: the APIs; the first is used if a request is ambiguous.
    """

    def __init__(self, wires: Sequence[Wire]) -> None:
        self._wires = {wire.api: wire for wire in wires}
        self._first = wires[0]
        self._exact: defaultdict[str, list[RouteTarget]] = defaultdict(list)
        self._templates: defaultdict[int, list[_PathTemplate]] = defaultdict(list)
        for wire in wires:
            for route in wire.routes:
                self._add(RouteTarget(wire, route))

    def _add(self, target: RouteTarget) -> None:
        path = target.route.path
        if "{" not in path:
            self._exact[path].append(target)
            return
        segments = tuple(_parse_segment(text) for text in path.split("/"))
        self._templates[len(segments)].append(_PathTemplate(segments, target))

    def targets_at(self, path: str) -> Sequence[RouteTarget]:
        """Return the operations at a quoted path, for any method."""
        exact = self._exact.get(path)
        if exact:
            return exact
        segments = [unquote(segment) for segment in path.split("/")]
        matches = (template.match(segments) for template in self._templates[len(segments)])
        return [target for target in matches if target is not None]

    def select_target(
        self,
        targets: Sequence[RouteTarget],
        headers: Mapping[str, str],
        body: bytes = b"",
    ) -> RouteTarget:
        """Select one of several operations at a path, by headers or model name."""
        if len(targets) == 1:
            return targets[0]
        by_api = {target.wire.api: target for target in targets}
        return _first_matching(by_api.get, _candidate_apis(headers, body)) or targets[0]

    def guess_wire(self, path: str, headers: Mapping[str, str]) -> Wire:
        """Return the API whose format is used for the error of an unknown path."""
        by_path = (api for prefix, api in _APIS_BY_PATH if path.startswith(prefix))
        return _first_matching(self._wires.get, (*by_path, *_candidate_apis(headers, b""))) or self._first


def _parse_segment(text: str) -> tuple[str, str]:
    """Return the name of the variable, empty if it has none, and the literal suffix."""
    name, closed, rest = text.removeprefix("{").partition("}")
    return (name, rest) if closed else ("", text)


def _candidate_apis(headers: Mapping[str, str], body: bytes) -> Iterable[Api]:
    """Yield the APIs that a request may be meant for, most likely first, judged by anything but its path."""
    for header, api in _APIS_BY_HEADER:
        if header in headers:
            yield api
    if b"deepseek" in body and _model_name(body).startswith("deepseek"):
        yield Api.DEEPSEEK
    yield Api.OPENAI_CHAT


def _model_name(body: bytes) -> str:
    try:
        document = parse_json(body)
    except ValueError:
        return ""
    model = document.get("model") if isinstance(document, dict) else None
    return model if isinstance(model, str) else ""


def _first_matching(find: Callable[[Api], T | None], apis: Iterable[Api]) -> T | None:
    found = (find(api) for api in apis)
    return next((it for it in found if it is not None), None)


WIRES: tuple[Wire, ...] = (
    OpenAiChat(),
    OpenAiResponses(),
    DeepSeekWire(),
    AnthropicWire(),
    GeminiWire(),
    OllamaWire(),
)
"""The APIs; the first is used if a request is ambiguous."""
