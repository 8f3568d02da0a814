"""Runs of tests ↔ protobuf."""
