"""Prompts and answers ↔ protobuf messages, nothing else."""
