"""Routing of requests to APIs and operations: one base URL serves every provider."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import unquote

from peripety.simulator.model import Api
from peripety.simulator.wire.json_text import parse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from peripety.simulator.wire.base import Route, Wire

__all__ = ["Router", "Target"]

T = TypeVar("T")

_BY_PATH = (
    ("/v1beta", Api.GEMINI),
    ("/api/", Api.OLLAMA),
    ("/v1/messages", Api.ANTHROPIC),
    ("/v1/responses", Api.OPENAI_RESPONSES),
)
_BY_HEADER = (
    ("anthropic-version", Api.ANTHROPIC),
    ("x-goog-api-key", Api.GEMINI),
    ("x-api-key", Api.ANTHROPIC),
)


@dataclass(frozen=True, slots=True)
class Target:
    """An operation of an API, with the variables of the path."""

    wire: Wire
    route: Route
    params: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Template:
    """A path template. Each variable segment has a name, possibly empty, and a literal suffix."""

    segments: tuple[tuple[str, str], ...]
    target: Target

    def match(self, segments: Sequence[str]) -> Target | None:
        params = {}
        for (name, literal), segment in zip(self.segments, segments, strict=True):
            if not name:
                if segment != literal:
                    return None
            elif len(segment) > len(literal) and segment.endswith(literal):
                params[name] = segment.removesuffix(literal)
            else:
                return None
        return Target(self.target.wire, self.target.route, params)


class Router:
    """Router of the paths of some APIs.

    Args:
        wires: the APIs; the first is used if a request is ambiguous.
    """

    def __init__(self, wires: Sequence[Wire]) -> None:
        self._wires = {wire.api: wire for wire in wires}
        self._first = wires[0]
        self._exact: defaultdict[str, list[Target]] = defaultdict(list)
        self._templates: defaultdict[int, list[_Template]] = defaultdict(list)
        for wire in wires:
            for route in wire.routes:
                self._add(Target(wire, route))

    def _add(self, target: Target) -> None:
        path = target.route.path
        if "{" not in path:
            self._exact[path].append(target)
            return
        segments = tuple(_segment(text) for text in path.split("/"))
        self._templates[len(segments)].append(_Template(segments, target))

    def at(self, path: str) -> Sequence[Target]:
        """Return the operations at a quoted path, for any method."""
        exact = self._exact.get(path)
        if exact:
            return exact
        segments = [unquote(segment) for segment in path.split("/")]
        matches = (template.match(segments) for template in self._templates[len(segments)])
        return [target for target in matches if target is not None]

    def choose(self, targets: Sequence[Target], headers: Mapping[str, str], body: bytes = b"") -> Target:
        """Select one of several operations at a path, by headers or model name."""
        if len(targets) == 1:
            return targets[0]
        by_api = {target.wire.api: target for target in targets}
        return _first(by_api.get, _signs(headers, body)) or targets[0]

    def guess(self, path: str, headers: Mapping[str, str]) -> Wire:
        """Return the API whose format is used for the error of an unknown path."""
        by_path = (api for prefix, api in _BY_PATH if path.startswith(prefix))
        return _first(self._wires.get, (*by_path, *_signs(headers, b""))) or self._first


def _segment(text: str) -> tuple[str, str]:
    """Return the name of the variable, empty if it has none, and the literal suffix."""
    name, closed, rest = text.removeprefix("{").partition("}")
    return (name, rest) if closed else ("", text)


def _signs(headers: Mapping[str, str], body: bytes) -> Iterable[Api]:
    """Yield the APIs that a request may be meant for, most likely first, judged by anything but its path."""
    for header, api in _BY_HEADER:
        if header in headers:
            yield api
    if b"deepseek" in body and _model(body).startswith("deepseek"):
        yield Api.DEEPSEEK
    yield Api.OPENAI_CHAT


def _model(body: bytes) -> str:
    try:
        document = parse(body)
    except ValueError:
        return ""
    model = document.get("model") if isinstance(document, dict) else None
    return model if isinstance(model, str) else ""


def _first(find: Callable[[Api], T | None], apis: Iterable[Api]) -> T | None:
    found = (find(api) for api in apis)
    return next((it for it in found if it is not None), None)
