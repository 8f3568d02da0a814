"""Protocol of all model gateways."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.gateway.model.answering import Completion, GatewayEvent
    from peripety.gateway.model.asking import GenerateRequest

__all__ = ["ModelGateway"]


class ModelGateway(Protocol):
    """Protocol of a model gateway, independent of the provider and of the process it runs in."""

    def stream(self, request: GenerateRequest) -> AsyncIterator[GatewayEvent]:
        """Stream the answer of a request as it is generated.

        Cancellation closes the call to the provider. A caller that may leave the iteration early must wrap it
        in `peripety.gateway.streams.following`.

        Yields:
            Fallbacks before any delta, deltas, at most one `Repairing`, and `Completed` as the last event.

        Raises:
            InvalidArgumentError: the request is malformed.
            FailedPreconditionError: the provider is not configured or rejects the credentials, or (code
                ANSWER_INVALID, the findings as violations) the answer was still invalid after the repair;
                never under an advisory schema.
            NotFoundError: the provider does not know the model.
            ResourceExhaustedError: a limit, a budget or the provider's quota is exhausted.
            UnavailableError: the provider does not answer, or broke off.
            DeadlineError: the caller's deadline passed.
        """
        ...

    async def generate(self, request: GenerateRequest) -> Completion:
        """Return the whole answer of a request; raises the errors of `stream`."""
        ...
