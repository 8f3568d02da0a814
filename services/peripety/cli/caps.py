"""Upper limits of numeric options: above any sensible run, and within the range of the request fields."""

__all__ = ["MAX_CALLS", "MAX_COUNT", "MAX_DOLLARS", "MAX_SECONDS", "MAX_TOKENS"]

MAX_CALLS = 10**6
MAX_COUNT = 10**9
MAX_TOKENS = 10**12
MAX_DOLLARS = 1e6
MAX_SECONDS = 1e6
