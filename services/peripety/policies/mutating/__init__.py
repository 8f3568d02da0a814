"""Mutation testing of policies."""
