"""Protobuf codec of prompts and answers."""
