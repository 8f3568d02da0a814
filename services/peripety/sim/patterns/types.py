"""Types of text patterns and of the subjects they match."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

__all__ = ["Pattern", "Subject", "TextKind", "TextPattern"]


class TextKind(StrEnum):
    """Comparison of a text with a pattern."""

    EXACT = "exact"
    CONTAINS = "contains"
    REGEX = "regex"  # found anywhere, unless anchored
    GLOB = "glob"  # matches the whole text: * any characters, ? one character, [..] one of these
    ANY = "any"


@dataclass(frozen=True, slots=True)
class TextPattern:
    """Pattern for one text; `ignore_case` folds ASCII letters only."""

    kind: TextKind
    text: str = ""
    ignore_case: bool = False


@dataclass(frozen=True, slots=True)
class Pattern:
    """Conjunction of predicates; absent ones always match.

    Attributes:
        text: for the prompt, which is empty if only tool results arrived.
        model: for the name of the model.
        tool_result: for the arrived tool results, joined by newlines; never matches without any.
        message_index: minimum and maximum number of earlier answers in the conversation.
    """

    text: TextPattern = field(default_factory=lambda: TextPattern(TextKind.ANY))
    model: TextPattern | None = None
    tool_result: TextPattern | None = None
    message_index: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Subject:
    """Texts that patterns are matched against; see `Pattern` for the fields."""

    text: str
    model: str = ""
    tool_result: str | None = None
    message_index: int = 0
