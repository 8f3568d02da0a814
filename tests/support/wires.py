"""Calls of a wire module without a server: requests, and a service that answers for the simulator."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from peripety.llmsim.provider_rules.models import load_models
from peripety.llmsim.state import StateTable
from peripety.llmsim.types import BilledUsage, SimReply, SimStopReason
from peripety.llmsim.wire.base import HttpCall, WireOperation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.llmsim.provider_rules.models import SimModel
    from peripety.llmsim.types import Api, ReplyPart
    from peripety.llmsim.wire.base import Wire


NOW = 1_767_225_600.0  # 2026-01-01


class FakeService:
    """The models there are, a clock that stands still, and tables of its own."""

    def __init__(self) -> None:
        self._tables: dict[str, StateTable] = {}

    def now(self) -> float:
        return NOW

    def models(self, api: Api) -> Sequence[SimModel]:
        return load_models().models_of(api)

    def objects(self, name: str) -> StateTable:
        return self._tables.setdefault(name, StateTable())


def call(
    wire: Wire,
    body: Any = None,
    headers: Mapping[str, str] | None = None,
    *,
    name: str | None = None,
    params: Mapping[str, str] | None = None,
) -> HttpCall:
    """A call of a wire's route: of the one of this name, or of the first that asks for an answer."""
    route = next(
        route
        for route in wire.routes
        if (route.operation is WireOperation.GENERATE if name is None else route.name == name)
    )
    data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    return HttpCall(route, headers or {}, params or {}, data)


def reply(
    *parts: ReplyPart,
    model: str = "test-model",
    stop: SimStopReason = SimStopReason.END,
    usage: BilledUsage | None = None,
    stop_sequence: str | None = None,
    id_: str = "0123456789abcdef01234567",
) -> SimReply:
    """An answer made of these parts."""
    counted = BilledUsage(fresh=10, output=5) if usage is None else usage
    return SimReply(id_, NOW, model, parts, stop, counted, stop_sequence)
