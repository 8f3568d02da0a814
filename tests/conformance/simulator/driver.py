"""A driver turns a question into calls of one SDK, and what the SDK shows into an observation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.simulator.cases import Question
    from conformance.simulator.observation import Observation, Raised
    from peripety.llmsim.types import SimStopReason


class Driver(Protocol):
    """One API, through one SDK.

    Attributes:
        name: what its column is called.
        package: the distribution that the SDK comes in.
        stops: the API's word for each reason to stop.
        raises: what has to be raised for each kind of failure that is an error.
        gaps: what the SDK itself leaves out or does not notice, and why, by the case's name.
        lacks: what the API has nothing for, and why, by the case's name.
    """

    name: str
    package: str
    stops: Mapping[SimStopReason, str]
    raises: Mapping[str, Raised]
    gaps: Mapping[str, str]
    lacks: Mapping[str, str]

    def __init__(self, url: str) -> None:
        """Make the clients, of the simulator that is served at a base URL."""
        ...

    def ask(self, question: Question, seen: Observation, *, stream: bool) -> None:
        """Send a request, and record the answer while it arrives; exceptions of the SDK are let through."""
        ...

    async def ask_async(self, question: Question, seen: Observation, *, stream: bool) -> None:
        """The same with the SDK's asynchronous client."""
        ...

    def raised(self, error: Exception) -> Raised:
        """Return the details of an exception that the SDK's user can read."""
        ...

    async def close(self) -> None:
        """Let go of the connections."""
        ...
