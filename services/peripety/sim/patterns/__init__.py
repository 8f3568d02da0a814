"""Patterns over texts: which of many rules is the first to match a prompt."""

from peripety.sim.patterns.types import Pattern, Subject, TextKind, TextPattern

__all__ = ["Pattern", "Subject", "TextKind", "TextPattern"]
