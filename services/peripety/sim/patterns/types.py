"""Patterns: what a text, the model it is meant for and its place in a conversation have to be like."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

__all__ = ["Pattern", "Subject", "TextKind", "TextPattern"]


class TextKind(StrEnum):
    """How a text is compared."""

    EXACT = "exact"
    CONTAINS = "contains"
    REGEX = "regex"  # found anywhere, unless anchored
    GLOB = "glob"  # the whole text: * any characters, ? one character, [..] one of these
    ANY = "any"


@dataclass(frozen=True, slots=True)
class TextPattern:
    """What one text has to be like; `ignore_case` folds the letters of ASCII and no others."""

    kind: TextKind
    text: str = ""
    ignore_case: bool = False


@dataclass(frozen=True, slots=True)
class Pattern:
    """A conjunction: every predicate that is given has to hold.

    Attributes:
        text: the prompt, empty where only tool results came in.
        model: the model's name.
        tool_result: the results of tools that came in, joined by newlines; never holds where none did.
        message_index: lowest and highest number of answers that the conversation may already hold.
    """

    text: TextPattern = field(default_factory=lambda: TextPattern(TextKind.ANY))
    model: TextPattern | None = None
    tool_result: TextPattern | None = None
    message_index: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Subject:
    """What patterns are held against; see `Pattern` for the fields."""

    text: str
    model: str = ""
    tool_result: str | None = None
    message_index: int = 0
