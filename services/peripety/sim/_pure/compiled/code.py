"""Source fragments with the known properties of their values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = ["LIMIT", "LONGEST_TEXT", "Code", "Kind", "NotLoweredError", "combined", "weight"]

# Bound of numbers in generated code, far from overflow; a run with a larger number is abandoned.
LIMIT = 1e100
# Bound of texts in bytes, so that no text affects fuel or limits.
LONGEST_TEXT = 1000


class NotLoweredError(Exception):
    """The scenario needs something that generated code cannot do exactly as the interpreter."""


class Kind(Enum):
    """Kind of a value, known before the run and constant."""

    NUMBER = "number"
    BOOLEAN = "boolean"
    TEXT = "text"
    NULL = "null"
    NUMBERS = "numbers"
    BOOLEANS = "booleans"
    TEXTS = "texts"

    @property
    def is_list(self) -> bool:
        """True for arrays, whose items are of one kind."""
        return self in _ITEMS

    @property
    def item(self) -> Kind:
        """The kind of an array's items."""
        return _ITEMS[self]

    @property
    def many(self) -> Kind:
        """The kind of an array of such values."""
        for many, item in _ITEMS.items():
            if item is self:
                return many
        raise NotLoweredError(f"an array of {self.value}")


_ITEMS = {Kind.NUMBERS: Kind.NUMBER, Kind.BOOLEANS: Kind.BOOLEAN, Kind.TEXTS: Kind.TEXT}


@dataclass(frozen=True)
class Code:
    """Python expression with what is known about its value.

    Attributes:
        text: the source.
        kind: the kind of its value.
        steps: upper bound of the interpreter's fuel and produced items.
        bound: upper bound of the magnitude of numbers in the value.
        length: maximum length of an array.
        fails: True if it may abandon the run.
        atom: True if it needs no parentheses as an operand.
        literal: the value if known: a number, boolean or text.
        null: True if the value may be null instead.
        absent: True if null means that nothing is there.
    """

    text: str
    kind: Kind
    steps: int = 1
    bound: float = 0.0
    length: int = 0
    fails: bool = False
    atom: bool = True
    literal: float | bool | str | None = None
    null: bool = False
    absent: bool = False

    @property
    def operand(self) -> str:
        """The source, in parentheses if needed."""
        return self.text if self.atom else f"({self.text})"


def weight(item: Code) -> int:
    """Return the interpreter's charge for a produced item: itself and its characters."""
    return 1 + (int(item.bound) if item.kind is Kind.TEXT else 0)


def combined(
    text: str,
    kind: Kind,
    items: list[Code],
    *,
    bound: float = 1.0,
    length: int = 0,
    steps: int = 0,
    fails: bool = False,
    atom: bool = False,
    null: bool = False,
) -> Code:
    """Build an operation over evaluated arguments, with one step and their cost."""
    return Code(
        text,
        kind,
        1 + steps + sum(item.steps for item in items),
        bound,
        length,
        fails=fails or any(item.fails for item in items),
        atom=atom,
        null=null,
    )
