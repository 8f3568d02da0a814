"""Text patterns: find the first of many rules that matches a prompt."""

from peripety.sim.patterns.matcher import Matcher
from peripety.sim.patterns.syntax import PatternError
from peripety.sim.patterns.types import Pattern, Subject, TextKind, TextPattern

__all__ = ["Matcher", "Pattern", "PatternError", "Subject", "TextKind", "TextPattern"]
