"""Conversion between scenario types and protobuf messages."""
