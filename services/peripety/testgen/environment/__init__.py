"""Where a task is to be done, found out by reading: nothing of it is ever run."""

from peripety.testgen.environment.introspecting import introspect

__all__ = ["introspect"]
