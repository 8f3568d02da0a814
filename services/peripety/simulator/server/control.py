"""Control endpoints: inspection and control of the simulator by a test in another process."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from peripety.errors import (
    ErrorKind,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PeripetyError,
)
from peripety.simulator.scenario.load import document_to_scenario
from peripety.simulator.wire.base import Document
from peripety.simulator.wire.json_text import compact, parse

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from peripety.simulator.simulator import Simulator

__all__ = ["PREFIX", "Control", "refusal"]

PREFIX = "/_simulator/"

_TABLES = ("conversations", "cache", "limits", "bills")
_STATUSES = {
    ErrorKind.INVALID_ARGUMENT: 400,
    ErrorKind.NOT_FOUND: 404,
    ErrorKind.FAILED_PRECONDITION: 409,
}


class Control:
    """Handler of `/_simulator/`.

    Args:
        simulator: the simulator.
        reload: reads the script file again; None if the script was not read from a file.
    """

    def __init__(self, simulator: Simulator, reload: Callable[[], None] | None = None) -> None:
        self._simulator = simulator
        self._reload = reload
        self._endpoints: dict[str, Callable[[Mapping[str, Any]], Any]] = {
            "GET health": lambda _: {"status": "ok"},
            "GET calls": lambda _: {"calls": [call.to_json() for call in simulator.captured]},
            "GET state": lambda _: self._state(),
            "POST reset": lambda _: simulator.reset(),
            "POST clock": self._move_clock,
            "POST fail": self._fail,
            "POST reload": lambda _: self._read_again(),
        }

    def answer(self, method: str, path: str, body: bytes) -> Document:
        """Execute a request; errors become documents."""
        try:
            name = f"{method} {path.removeprefix(PREFIX)}"
            endpoint = self._endpoints.get(name)
            if endpoint is None:
                raise NotFoundError(
                    f"endpoint {name} does not exist; use one of {', '.join(self._endpoints)}"
                )
            return Document(200, compact(endpoint(_settings(body)) or {}))
        except PeripetyError as error:
            return refusal(error)

    def _state(self) -> Any:
        return {
            "now": self._simulator.now(),
            "entries": {name: len(self._simulator.objects(name)) for name in _TABLES},
            "bills": [asdict(account) for account in self._simulator.accounts],
        }

    def _move_clock(self, settings: Mapping[str, Any]) -> Any:
        seconds = settings.get("advance")
        if not isinstance(seconds, int | float) or isinstance(seconds, bool) or len(settings) != 1:
            raise InvalidArgumentError('The clock is moved by {"advance": SECONDS}')
        return {"now": self._simulator.advance(seconds)}

    def _fail(self, settings: Mapping[str, Any]) -> None:
        """Inject a fault, given as in a script file; `times` is the number of occurrences."""
        (failure,) = document_to_scenario({"failures": [settings]}, name="the request").failures
        self._simulator.inject(failure)

    def _read_again(self) -> None:
        if self._reload is None:
            raise FailedPreconditionError("the script was not read from a file")
        self._reload()


def refusal(error: PeripetyError) -> Document:
    """Return an error as a document."""
    status = _STATUSES.get(error.kind, 500)
    return Document(status, compact({"error": {"code": error.code, "message": str(error)}}))


def _settings(body: bytes) -> Mapping[str, Any]:
    try:
        settings = parse(body) if body else {}
    except ValueError as error:
        raise InvalidArgumentError(f"body is not JSON: {error}") from None
    if not isinstance(settings, dict):
        raise InvalidArgumentError("body is not a JSON object")
    return settings
