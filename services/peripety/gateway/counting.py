"""Token counts of prompts, without a model call."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from peripety.errors import ResourceExhaustedError, UnavailableError
from peripety.gateway.checks import check_tools
from peripety.gateway.history import merge_messages
from peripety.gateway.sizes import prompt_tokens

if TYPE_CHECKING:
    from collections.abc import Callable

    from peripety.gateway.model import CachePlan, GenerateRequest
    from peripety.gateway.providers.base import Call, Provider
    from peripety.gateway.providers.registry import Providers

__all__ = ["TokenCount", "TokenCounter"]


@dataclass(frozen=True, slots=True)
class TokenCount:
    """Size of a prompt.

    Attributes:
        input_tokens: the tokens that a model would read.
        exact: whether the provider has counted; otherwise the count is an upper estimate.
        cache_plan: the predicted effect on the prompt cache; None if it is disabled or unknown.
    """

    input_tokens: int
    exact: bool
    cache_plan: CachePlan | None = None


class TokenCounter:
    """Token counter for prompts.

    Args:
        providers: the providers that may count.
        plan: returns the predicted effect of a call on the prompt cache.
    """

    def __init__(self, providers: Providers, plan: Callable[[Provider, Call], CachePlan | None]) -> None:
        self._providers = providers
        self._plan = plan

    async def count(self, request: GenerateRequest) -> TokenCount:
        """Return the provider's count, or an estimate if the provider does not count or is unavailable.

        Raises:
            InvalidArgumentError: the prompt is invalid.
            FailedPreconditionError: the provider lacks a setting, or rejects the credentials.
            NotFoundError: the provider does not know the model.
        """
        check_tools(request.tools, request.tool_choice)
        request = replace(request, messages=merge_messages(request.messages))
        provider, call = self._providers.select(request)
        try:
            counted = await provider.count_tokens(call)
        except (ResourceExhaustedError, UnavailableError):
            counted = None
        tokens = prompt_tokens(request) if counted is None else counted
        return TokenCount(tokens, counted is not None, self._plan(provider, call))
