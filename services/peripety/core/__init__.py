"""Shared parts of all services: storage, idempotency, durable runs, concurrency. No domain, no gRPC."""
