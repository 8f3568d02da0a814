"""What all services share: storage, idempotency, durable runs, concurrency. No domain, no gRPC."""
