"""Agents: phases over one conversation that outlive calls and processes."""
