"""Registration of the gateway in a process: in-process for other services, and over gRPC."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from peripety.api.gateway.v1 import gateway_pb2 as pb
from peripety.api.gateway.v1.gateway_pb2_grpc import add_GatewayServiceServicer_to_server
from peripety.clock import microseconds_now
from peripety.gateway.batch import Batches
from peripety.gateway.calling import Caller
from peripety.gateway.calling.budgets import Budgets, MemoryLedger
from peripety.gateway.calling.clock import Clock
from peripety.gateway.calling.counters import MemoryCounters
from peripety.gateway.calling.reports import log_call
from peripety.gateway.calling.shared import Leases, RedisCounters, RedisLedger
from peripety.gateway.catalogue import Catalogue, ModelList
from peripety.gateway.conversations.conversations import Conversations
from peripety.gateway.conversations.store import ConversationStore
from peripety.gateway.counting import TokenCounter
from peripety.gateway.gateway import LocalModelGateway
from peripety.gateway.model import ModelGateway
from peripety.gateway.prompt_cache import Release, release_of
from peripety.gateway.providers.registry import Providers
from peripety.gateway.response_cache import (
    CachingModelGateway,
    DiskAnswers,
    MemoryAnswers,
    RedisAnswers,
    ResponseCache,
)
from peripety.gateway.service import GatewayParts, GatewayServicer
from peripety.gateway.sizes import fixed_tokens
from peripety.gateway.usage import UsageBook, UsageStore

if TYPE_CHECKING:
    from peripety.gateway.calling.budgets import Ledger
    from peripety.gateway.calling.counters import Counters
    from peripety.gateway.calling.reports import CallReport
    from peripety.gateway.model import GenerateRequest
    from peripety.gateway.response_cache.cache import Place
    from peripety.wiring import Wiring

__all__ = ["bind"]


async def bind(wiring: Wiring) -> None:
    """Create the configured providers, provide `ModelGateway`, and register the services."""
    providers = Providers(wiring.config)
    wiring.resources.push_async_callback(providers.aclose)
    clock = Clock()
    usage = UsageBook(UsageStore(await wiring.database()), clock.today)
    wiring.resources.push_async_callback(usage.aclose)
    cache = await _response_cache(wiring)
    caller = _caller(wiring, clock, usage)
    gateway = CachingModelGateway(
        LocalModelGateway(providers, caller),
        cache,
        providers.answerer,
        usage.add_hit,
    )
    wiring.resources.push_async_callback(gateway.aclose)
    wiring.provide(ModelGateway, gateway)
    models = ModelList(
        Catalogue.load(wiring.config.models), providers.default, lambda: datetime.now(UTC).date()
    )
    conversations = Conversations(
        gateway,
        ConversationStore(await wiring.database(), microseconds_now),
        partial(_room_for_prompts, providers),
        microseconds_now,
    )
    parts = GatewayParts(
        gateway=gateway,
        batches=Batches(gateway, cache, providers.answerer, partial(_release, providers), usage.add_hit),
        counter=TokenCounter(providers, caller.cache_plan),
        conversations=conversations,
        models=models,
        usage=usage,
    )
    add_GatewayServiceServicer_to_server(GatewayServicer(parts), wiring.server)
    wiring.register(pb.DESCRIPTOR.services_by_name["GatewayService"].full_name)
    wiring.provide(Conversations, conversations)


def _release(providers: Providers, request: GenerateRequest) -> Release:
    """Return when other requests can read what a request has written to the prompt cache of its model."""
    rules = providers.first(request)[1].data.cache
    too_short = fixed_tokens(request.system or "", request.tools) < rules.minimum_tokens
    return Release.AT_ONCE if too_short or not request.cache.enabled else release_of(rules)


def _caller(wiring: Wiring, clock: Clock, usage: UsageBook) -> Caller:
    def report(call: CallReport) -> None:
        log_call(call)
        usage.add_call(call)

    counters: Counters = MemoryCounters(clock.now)
    ledger: Ledger = MemoryLedger(clock)
    redis = wiring.redis()
    if redis is not None:
        leases = Leases(redis)
        wiring.resources.push_async_callback(leases.aclose)
        counters, ledger = RedisCounters(leases), RedisLedger(leases)
    budgets = Budgets(wiring.config.daily_budget, ledger, usage, clock)
    return Caller(wiring.config, clock, counters=counters, budgets=budgets, report=report)


def _room_for_prompts(providers: Providers, request: GenerateRequest) -> int:
    """Return the context window minus the output tokens of a request's model; 0 if unknown."""
    _, call = providers.first(request)
    answer = request.max_output_tokens or call.data.default_output_tokens
    return max(0, call.data.context_tokens - answer)


async def _response_cache(wiring: Wiring) -> ResponseCache:
    config = wiring.config
    places: list[Place] = []
    if config.response_cache_disk_bytes:
        places.append(DiskAnswers(await wiring.database(), config.response_cache_disk_bytes))
    redis = wiring.redis()
    if redis is not None:
        places.append(RedisAnswers(redis))
    return ResponseCache(
        MemoryAnswers(config.response_cache_memory_bytes),
        places,
        ttl=config.response_cache_ttl_seconds,
        clock=time.time,
    )
