"""Calls of a wire module without a server: requests, and a service that answers for the simulator."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from peripety.simulator.model import Reply, Stop, Usage
from peripety.simulator.state import Table
from peripety.simulator.truth.models import catalogue
from peripety.simulator.wire.base import Call, Operation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.simulator.model import Api, Part
    from peripety.simulator.truth.models import Model
    from peripety.simulator.wire.base import Wire

__all__ = ["FakeService", "call", "reply"]

NOW = 1_767_225_600.0  # 2026-01-01


class FakeService:
    """The models there are, a clock that stands still, and tables of its own."""

    def __init__(self) -> None:
        self._tables: dict[str, Table] = {}

    def now(self) -> float:
        return NOW

    def models(self, api: Api) -> Sequence[Model]:
        return catalogue().of(api)

    def objects(self, name: str) -> Table:
        return self._tables.setdefault(name, Table())


def call(
    wire: Wire,
    body: Any = None,
    headers: Mapping[str, str] | None = None,
    *,
    name: str | None = None,
    params: Mapping[str, str] | None = None,
) -> Call:
    """A call of a wire's route: of the one of this name, or of the first that asks for an answer."""
    route = next(
        route
        for route in wire.routes
        if (route.operation is Operation.GENERATE if name is None else route.name == name)
    )
    data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    return Call(route, headers or {}, params or {}, data)


def reply(
    *parts: Part,
    model: str = "test-model",
    stop: Stop = Stop.END,
    usage: Usage | None = None,
    stop_sequence: str | None = None,
    id_: str = "0123456789abcdef01234567",
) -> Reply:
    """An answer made of these parts."""
    counted = Usage(fresh=10, output=5) if usage is None else usage
    return Reply(id_, NOW, model, parts, stop, counted, stop_sequence)
