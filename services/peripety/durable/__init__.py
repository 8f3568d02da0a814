"""Runs that outlive calls, connections and processes: leases, logs, whoever works and whoever follows."""
