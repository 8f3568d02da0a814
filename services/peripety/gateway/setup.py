"""Registration of the gateway in a process: in-process for other services, and over gRPC."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from peripety.api.gateway.v1 import gateway_pb2 as pb
from peripety.api.gateway.v1.gateway_pb2_grpc import add_GatewayServiceServicer_to_server
from peripety.core.call_context import Clock, now_micros
from peripety.gateway.batch import BatchRunner, WarmupPolicy, warmup_policy_of
from peripety.gateway.budgets.budget_session import BudgetManager, MemoryBudgetLedger
from peripety.gateway.calls.executor import CallExecutor, log_call
from peripety.gateway.calls.rate_limiter import MemoryUsageCounters
from peripety.gateway.calls.redis_limits import LeaseManager, RedisBudgetLedger, RedisUsageCounters
from peripety.gateway.conversations.manager import ConversationManager
from peripety.gateway.conversations.store import ConversationStore
from peripety.gateway.local_gateway import LocalModelGateway, TokenCounter
from peripety.gateway.models.catalog import ModelCatalog, ModelList
from peripety.gateway.providers.registry import ProviderRegistry
from peripety.gateway.response_cache.caching_gateway import CachingModelGateway
from peripety.gateway.response_cache.tiers import DatabaseTier, MemoryTier, RedisTier, ResponseCache
from peripety.gateway.scripted_calls import ScriptedCallLog
from peripety.gateway.service import GatewayComponents, GatewayServicer
from peripety.gateway.token_estimate import estimate_fixed_tokens
from peripety.gateway.types.response import ModelGateway
from peripety.gateway.usage import UsageAggregator, UsageStore

if TYPE_CHECKING:
    from peripety.gateway.budgets.types import BudgetLedger
    from peripety.gateway.calls.executor import CallRecord
    from peripety.gateway.calls.rate_limiter import UsageCounters
    from peripety.gateway.response_cache.tiers import CacheTier
    from peripety.gateway.types.request import GenerateRequest
    from peripety.rpc.container import ServiceContainer


async def register_service(wiring: ServiceContainer) -> None:
    """Create the configured providers, provide `ModelGateway`, and register the services."""
    providers = ProviderRegistry(wiring.config)
    wiring.resources.push_async_callback(providers.aclose)
    clock = Clock()
    usage = UsageAggregator(UsageStore(await wiring.get_database()), clock.today)
    wiring.resources.push_async_callback(usage.aclose)
    cache = await _create_response_cache(wiring)
    caller = _create_executor(wiring, clock, usage)
    gateway = CachingModelGateway(
        LocalModelGateway(providers, caller),
        cache,
        providers.answer_source,
        usage.add_hit,
    )
    wiring.resources.push_async_callback(gateway.aclose)
    wiring.register(ModelGateway, gateway)
    models = ModelList(
        ModelCatalog.load(wiring.config.models),
        providers.default,
        lambda: datetime.now(UTC).date(),
    )
    conversations = ConversationManager(
        gateway,
        ConversationStore(await wiring.get_database(), now_micros),
        partial(_prompt_window, providers),
        now_micros,
    )
    scripted_calls = ScriptedCallLog(wiring.config.scripted_api_base)
    wiring.on_stopping(scripted_calls.aclose)
    parts = GatewayComponents(
        gateway=gateway,
        batches=BatchRunner(
            gateway,
            cache,
            providers.answer_source,
            partial(_warmup_policy_of, providers),
            usage.add_hit,
        ),
        counter=TokenCounter(providers, caller.plan_cache),
        conversations=conversations,
        models=models,
        usage=usage,
        executor=caller,
        scripted_calls=scripted_calls,
    )
    add_GatewayServiceServicer_to_server(GatewayServicer(parts), wiring.server)
    service = pb.DESCRIPTOR.services_by_name["GatewayService"].full_name
    wiring.methods_without_deadline.add(f"/{service}/WatchScriptedCalls")
    wiring.add_service_name(service)
    wiring.register(ConversationManager, conversations)


def _warmup_policy_of(providers: ProviderRegistry, request: GenerateRequest) -> WarmupPolicy:
    """Return when other requests can read what a request has written to the prompt cache of its model."""
    rules = providers.first_configured(request)[1].data.cache
    too_short = estimate_fixed_tokens(request.system or "", request.tools) < rules.minimum_tokens
    return WarmupPolicy.AT_ONCE if too_short or not request.cache.enabled else warmup_policy_of(rules)


def _create_executor(wiring: ServiceContainer, clock: Clock, usage: UsageAggregator) -> CallExecutor:
    def report(call: CallRecord) -> None:
        log_call(call)
        usage.add_call(call)

    counters: UsageCounters = MemoryUsageCounters(clock.now)
    ledger: BudgetLedger = MemoryBudgetLedger(clock)
    redis = wiring.get_redis()
    if redis is not None:
        leases = LeaseManager(redis)
        wiring.resources.push_async_callback(leases.aclose)
        counters, ledger = RedisUsageCounters(leases), RedisBudgetLedger(leases)
    budgets = BudgetManager(wiring.config.daily_budget, ledger, usage, clock)
    return CallExecutor(wiring.config, clock, counters=counters, budgets=budgets, record_call=report)


def _prompt_window(providers: ProviderRegistry, request: GenerateRequest) -> int:
    """Return the context window minus the output tokens of a request's model; 0 if unknown."""
    _, call = providers.first_configured(request)
    answer = request.max_output_tokens or call.data.default_output_tokens
    return max(0, call.data.context_tokens - answer)


async def _create_response_cache(wiring: ServiceContainer) -> ResponseCache:
    config = wiring.config
    places: list[CacheTier] = []
    if config.response_cache_disk_bytes:
        places.append(DatabaseTier(await wiring.get_database(), config.response_cache_disk_bytes))
    redis = wiring.get_redis()
    if redis is not None:
        places.append(RedisTier(redis))
    return ResponseCache(
        MemoryTier(config.response_cache_memory_bytes),
        places,
        ttl=config.response_cache_ttl_seconds,
        clock=time.time,
    )
