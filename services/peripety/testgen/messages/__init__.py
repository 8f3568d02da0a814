"""Conversion between test generation types and protobuf messages."""
