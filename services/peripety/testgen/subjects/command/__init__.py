"""A program that the caller names, fed and looked at from outside."""

from peripety.testgen.subjects.command.subject import CommandSubject

__all__ = ["CommandSubject"]
