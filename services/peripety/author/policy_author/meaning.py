"""Meaning of a sentence: effect, described calls, conditions, exceptions and the scope of "only".

The meaning is made from a derivation alone; the tools give its words their meaning afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from peripety.author.policy_author.formulas import Formula
    from peripety.author.policy_author.tokens import WordToken


class Effect(Enum):
    """Effect of a clause on the calls that it describes."""

    PERMIT = "permit"
    FORBID = "forbid"
    ESCALATE = "escalate"
    REQUIRE = "require"
    """The requirement must hold; other calls are denied."""


class NotFollowedError(Exception):
    """A part of a sentence has no meaning for a rule.

    Attributes:
        part: the words of the sentence.
    """

    def __init__(self, part: str) -> None:
        super().__init__(part)
        self.part = part


class AmbiguousError(NotFollowedError):
    """A value may belong to more than one argument of a tool."""


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words that restrict calls: a preposition with its object, or the words of a condition.

    Attributes:
        preposition: the terminal of the preposition; empty without one.
        tokens: the words, literals and numbers.
        is_test: True if the words must restrict calls: the words of a condition or of an exception.
    """

    preposition: str
    tokens: tuple[WordToken, ...]
    is_test: bool = False

    @property
    def text(self) -> str:
        """The words, for messages."""
        return join_text(self.tokens)

    def has(self, *kinds: str) -> bool:
        """Return True if a token is of one of the kinds."""
        return any(one.kind in kinds for one in self.tokens)

    @property
    def has_value(self) -> bool:
        """True if it holds a literal or a number."""
        return self.has("NAME", "VALUE", "BOUND", "NUMBER")


@dataclass(frozen=True, slots=True)
class CallGroup:
    """Calls that a clause describes.

    Attributes:
        tokens: the words for the verb and its object.
        condition: the condition on these calls.
        antecedent: the words that a pronoun among the tokens refers to.
    """

    tokens: tuple[WordToken, ...]
    condition: Formula = True
    antecedent: tuple[WordToken, ...] = ()


@dataclass(frozen=True, slots=True)
class ClauseMeaning:
    """Meaning of a clause.

    Attributes:
        effect: its effect.
        groups: the calls that it describes.
        subjects: the objects in front of its verb, for clauses that share them.
        callers: phrases about the caller; empty for any caller.
        condition: the condition on all of its calls.
        exception: the calls that it is not about.
        focus: the part of the condition in the scope of "only"; None without "only".
        required: what a requirement demands; True otherwise.
        is_rest: True if it is about the calls that no other clause decides.
        has_posts: True if words follow its verb.
        excluded: calls that a permission of everything leaves out.
    """

    effect: Effect
    groups: tuple[CallGroup, ...]
    callers: Formula = True
    condition: Formula = True
    exception: Formula = False
    focus: Formula | None = None
    required: Formula = True
    is_rest: bool = False
    has_posts: bool = False
    subjects: tuple[CallGroup, ...] = ()
    excluded: tuple[CallGroup, ...] = ()


EMBEDDED: Final = "embedded"
"""The focus of "only" in front of an object: the values among the words of the object."""

AGENTS: Final = frozenset({"assistant", "agent", "bot", "model", "ai", "system"})
"""Words for the caller whose calls the policy decides."""

CALLERS: Final = frozenset({"caller", "callers"})
"""Words for any caller."""

OBJECT_PRONOUNS: Final = frozenset({"it", "they", "them"})
"""Pronouns for objects."""

VALUES: Final = frozenset({"NAME", "VALUE", "NUMBER"})
"""Terminals of values."""

IRRELEVANT: Final = frozenset({"DETERMINER", "QUANTIFIER"})
"""Terminals of words that leave the meaning of a noun as it is."""


def join_text(tokens: Iterable[WordToken]) -> str:
    """Return the words of tokens."""
    return " ".join(one.text for one in tokens).replace(" ,", ",")


def iter_phrases(formula: Formula) -> Iterator[Phrase]:
    """Yield the phrases of a formula."""
    if isinstance(formula, Phrase):
        yield formula
    for part in getattr(formula, "parts", ()):
        yield from iter_phrases(part)
