"""How large a prompt is, told without calling a model."""

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
    """The size of a prompt.

    Attributes:
        input_tokens: the tokens that a model would read.
        exact: whether its provider has counted them; otherwise they are estimated, rather too many.
        cache_plan: what the prompt cache would do; None when it is left alone, or nothing is known of it.
    """

    input_tokens: int
    exact: bool
    cache_plan: CachePlan | None = None


class TokenCounter:
    """Counts the tokens of prompts.

    Args:
        providers: who may count.
        plan: says what the prompt cache would do with a call.
    """

    def __init__(self, providers: Providers, plan: Callable[[Provider, Call], CachePlan | None]) -> None:
        self._providers = providers
        self._plan = plan

    async def count(self, request: GenerateRequest) -> TokenCount:
        """Ask the provider, or estimate when it does not count or cannot be asked now.

        Raises:
            InvalidArgumentError: the prompt cannot be sent.
            FailedPreconditionError: the provider lacks a setting, or refuses the credentials.
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
