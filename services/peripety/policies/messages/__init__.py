"""Conversion between policy types and protobuf messages."""
