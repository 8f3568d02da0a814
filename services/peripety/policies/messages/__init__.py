"""Policies ↔ protobuf messages, nothing else."""
