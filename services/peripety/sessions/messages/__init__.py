"""Conversion between sessions and protobuf messages."""
