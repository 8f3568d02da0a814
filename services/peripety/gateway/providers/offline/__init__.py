"""Offline provider, the default: authors scenarios and narrates turns without a model, a key or a network."""

from peripety.gateway.providers.offline.provider import OfflineProvider

__all__ = ["OfflineProvider"]
