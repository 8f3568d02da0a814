"""Durable runs: work that outlives calls, connections and processes, with leases and event logs."""
