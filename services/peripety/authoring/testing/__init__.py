"""Offline test author: tests of a task from its words, its files, and the engine where it decides.

A test expects only what is known from these; without such a fact, no test is written.
"""

from peripety.authoring.testing.looking import assessment, reflection
from peripety.authoring.testing.writing import write_tests

__all__ = ["assessment", "reflection", "write_tests"]
