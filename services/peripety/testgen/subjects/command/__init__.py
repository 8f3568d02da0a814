"""A command as subject, tested as a black box."""

from peripety.testgen.subjects.command.subject import CommandSubject

__all__ = ["CommandSubject"]
