"""Exact response cache: stored answers are reused for exactly the same request."""

from peripety.gateway.response_cache.cache import ResponseCache
from peripety.gateway.response_cache.disk import DiskAnswers
from peripety.gateway.response_cache.gateway import CachingModelGateway
from peripety.gateway.response_cache.memory import MemoryAnswers
from peripety.gateway.response_cache.redis import RedisAnswers

__all__ = ["CachingModelGateway", "DiskAnswers", "MemoryAnswers", "RedisAnswers", "ResponseCache"]
