"""Rate limits and budgets shared by several replicas, in one Redis server."""

from peripety.gateway.calling.shared.counters import RedisCounters
from peripety.gateway.calling.shared.leases import Leases
from peripety.gateway.calling.shared.ledger import RedisLedger

__all__ = ["Leases", "RedisCounters", "RedisLedger"]
