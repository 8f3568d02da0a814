"""One provider call: limits, circuit breaker, retries, fallbacks."""
