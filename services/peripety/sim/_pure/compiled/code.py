"""What the compiler builds a run from: pieces of Python source, and what is known about their values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = ["LIMIT", "LONGEST_TEXT", "Code", "Kind", "NotLoweredError", "combined", "weight"]

# Numbers of a compiled run stay below this, far from overflow: a run that has a larger one is played slowly.
LIMIT = 1e100
# Texts of a compiled run have at most this many bytes; none of them can then weigh on fuel or limits.
LONGEST_TEXT = 1000


class NotLoweredError(Exception):
    """The scenario does something that generated source cannot do exactly as the interpreter does."""


class Kind(Enum):
    """What a value is, known before the run; it never changes."""

    NUMBER = "number"
    BOOLEAN = "boolean"
    TEXT = "text"
    NULL = "null"
    NUMBERS = "numbers"
    BOOLEANS = "booleans"
    TEXTS = "texts"

    @property
    def is_list(self) -> bool:
        """Whether the value is an array; all its items are of one kind."""
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
    """A Python expression.

    Attributes:
        text: its source.
        kind: what it yields.
        steps: the most steps of fuel that the interpreter would need for it, and items it would make.
        bound: no number in its value is larger, either way.
        length: the most items of an array.
        fails: whether it may leave the compiled run.
        atom: whether it can be an operand without parentheses.
        literal: its value, when that is known: a number, boolean or text.
        null: whether it may be null instead.
        absent: whether null means that nothing is there.
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
        """Its source as an operand."""
        return self.text if self.atom else f"({self.text})"


def weight(item: Code) -> int:
    """What the interpreter charges for an item that it makes: itself, and its characters."""
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
    """An operation over evaluated arguments: one step, and what they cost."""
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
