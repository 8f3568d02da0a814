"""The protocol that all who ask a model speak."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.gateway.model.answering import Completion, GatewayEvent
    from peripety.gateway.model.asking import GenerateRequest

__all__ = ["ModelGateway"]


class ModelGateway(Protocol):
    """A way to ask a model, whichever provider answers and wherever the gateway runs."""

    def stream(self, request: GenerateRequest) -> AsyncIterator[GatewayEvent]:
        """Ask, and follow the answer as it is written.

        Being cancelled closes the call to the provider; whoever may leave the iteration early does so
        inside of `peripety.gateway.streams.following`.

        Yields:
            Fallbacks before any delta, deltas, at most one `Repairing`, and `Completed` as the last event.

        Raises:
            InvalidArgumentError: the request is malformed.
            FailedPreconditionError: the provider is not set up or refuses the credentials, or (code
                ANSWER_INVALID, the findings as violations) the answer was not valid even when asked again;
                never where the schema is advisory.
            NotFoundError: the provider does not know the model.
            ResourceExhaustedError: a limit, a budget or the provider's quota is used up.
            UnavailableError: the provider does not answer, or broke off.
            DeadlineError: the caller's time ran out.
        """
        ...

    async def generate(self, request: GenerateRequest) -> Completion:
        """Ask, and wait for the whole answer; raises what `stream` raises."""
        ...
