"""Prompt caches of providers: placement of breakpoints, prediction, and feedback from actual usage."""

from peripety.gateway.prompt_cache.fan_out import OneFillsTheCache, Outcome, Release, fan_out, release_of
from peripety.gateway.prompt_cache.prompt_cache import PromptCache
from peripety.gateway.prompt_cache.tokens import Estimate, Tokens
from peripety.gateway.prompt_cache.visit import Visit

__all__ = [
    "Estimate",
    "OneFillsTheCache",
    "Outcome",
    "PromptCache",
    "Release",
    "Tokens",
    "Visit",
    "fan_out",
    "release_of",
]
