"""Inspection of the environment of a task by reading files; nothing is executed."""

from peripety.testgen.environment.introspecting import introspect

__all__ = ["introspect"]
