"""Durable runs: leases, event logs, workers."""
