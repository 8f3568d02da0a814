"""View interface of a game, for people (`peripety.cli.story`) or as JSON lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from peripety.cli.jsonify import jsonify
from peripety.cli.output import write_json

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from peripety.api.scenario.v1 import scenario_pb2
    from peripety.api.session.v1 import session_pb2
    from peripety.cli.viewpoint import Viewpoint

__all__ = ["JsonView", "View"]


class View(Protocol):
    """Output of the preparation and the turns of a game."""

    def generation(self, event: scenario_pb2.GenerateScenarioResponse) -> None:
        """Show an event of the generation."""

    def compilation(self, event: scenario_pb2.CompileScenarioResponse) -> None:
        """Show an event of the compilation."""

    def session(self, session: session_pb2.Session, viewpoint: Viewpoint) -> None:
        """Show the start of a session and its point of view."""

    def turn(self, event: session_pb2.TurnEvent) -> None:
        """Show an event of a turn."""

    def end(self, session: session_pb2.Session) -> None:
        """Show the final session."""


class JsonView:
    """JSON lines view: one line per event, `{"step": ..., <the event's fields>}`."""

    def generation(self, event: scenario_pb2.GenerateScenarioResponse) -> None:
        """Print an event of the generation."""
        self._print("generation", event)

    def compilation(self, event: scenario_pb2.CompileScenarioResponse) -> None:
        """Print an event of the compilation."""
        self._print("compilation", event)

    def session(self, session: session_pb2.Session, viewpoint: Viewpoint) -> None:  # noqa: ARG002 - it names its entity
        """Print a session."""
        self._print("session", session)

    def turn(self, event: session_pb2.TurnEvent) -> None:
        """Print an event of a turn."""
        self._print("turn", event)

    def end(self, session: session_pb2.Session) -> None:
        """Print the final session."""
        self._print("end", session)

    @staticmethod
    def _print(step: str, message: Message) -> None:
        write_json({"step": step, **jsonify(message)})
