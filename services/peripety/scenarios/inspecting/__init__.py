"""Rule graph of a scenario: dependencies between rules, their activity in simulated runs, and drawings."""
