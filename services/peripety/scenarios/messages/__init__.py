"""Scenarios ↔ protobuf messages, nothing else."""
