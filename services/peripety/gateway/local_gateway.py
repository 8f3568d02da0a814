"""In-process gateway: checks the request, calls the provider, validates the answer; counts tokens."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from peripety.errors import ResourceExhaustedError, UnavailableError
from peripety.gateway.budgets.order_budget import with_time_limit
from peripety.gateway.calls.executor import FallbackChain
from peripety.gateway.message_normalization import normalize_messages
from peripety.gateway.request_checks import check_options, check_schema, check_tools
from peripety.gateway.structured_output.validator import generate_valid
from peripety.gateway.token_estimate import estimate_prompt_tokens
from peripety.gateway.types.response import collect_completion

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from peripety.gateway.calls.executor import CallExecutor
    from peripety.gateway.providers.provider import Provider, ProviderCall
    from peripety.gateway.providers.registry import ProviderRegistry
    from peripety.gateway.types.request import GenerateRequest
    from peripety.gateway.types.response import CachePlan, Completion, GatewayEvent


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
        plan_cache: returns the predicted effect of a call on the prompt cache.
    """

    def __init__(
        self,
        providers: ProviderRegistry,
        plan_cache: Callable[[Provider, ProviderCall], CachePlan | None],
    ) -> None:
        self._providers = providers
        self._plan_cache = plan_cache

    async def count(self, request: GenerateRequest) -> TokenCount:
        """Return the provider's count, or an estimate if the provider does not count or is unavailable.

        Raises:
            InvalidArgumentError: the prompt is invalid.
            FailedPreconditionError: the provider lacks a setting, or rejects the credentials.
            NotFoundError: the provider does not know the model.
        """
        check_tools(request.tools, request.tool_choice)
        request = replace(request, messages=normalize_messages(request.messages))
        provider, call = self._providers.select(request)
        try:
            counted = await provider.count_tokens(call)
        except (ResourceExhaustedError, UnavailableError):
            counted = None
        tokens = estimate_prompt_tokens(request) if counted is None else counted
        return TokenCount(tokens, counted is not None, self._plan_cache(provider, call))


class LocalModelGateway:
    """`ModelGateway` over the providers of this process.

    Args:
        providers: the providers.
        executor: executes the calls.
    """

    def __init__(self, providers: ProviderRegistry, executor: CallExecutor) -> None:
        self._providers = providers
        self._executor = executor

    def stream(self, request: GenerateRequest) -> AsyncIterator[GatewayEvent]:
        """Stream the answer of a request; see `ModelGateway.stream`.

        It checks the request at once, and returns the stream of the layer below instead of wrapping it.
        """
        check_options(request)
        if request.schema is not None:
            check_schema(request.schema)
        check_tools(request.tools, request.tool_choice)
        request = replace(request, messages=normalize_messages(request.messages))
        budget_session = self._executor.open_budgets(request)
        chain = FallbackChain(request, self._providers.select, self._executor, budget_session)
        schema = request.schema
        # Without a schema, only an answer that the request limits is worth a second look.
        is_limited = request.max_output_tokens is not None or request.answer_tokens is not None
        events = (
            chain.stream(request)
            if schema is None and not is_limited
            else generate_valid(chain.stream, request, schema)
        )
        seconds = None if request.budget is None else request.budget.max_seconds
        return events if seconds is None else with_time_limit(seconds, events)

    async def generate(self, request: GenerateRequest) -> Completion:
        """Return the whole answer of a request; see `ModelGateway.generate`."""
        return await collect_completion(self.stream(request))
