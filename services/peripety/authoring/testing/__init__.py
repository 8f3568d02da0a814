"""Tests of a task without a model: from its words, the files beside it, and the engine where it decides.

What cannot be known from that is not expected, and where nothing follows, nothing is written.
"""

from peripety.authoring.testing.looking import assessment, reflection
from peripety.authoring.testing.writing import write_tests

__all__ = ["assessment", "reflection", "write_tests"]
