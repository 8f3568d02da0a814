"""Derivations of a sentence: the grammar applied to its tokens.

A sentence with more than one derivation has more than one possible meaning; the reader compares them.

The number of derivations of a list of values grows with two to the power of its length. So a long list is
parsed as one of three values, "a, b or c", and the others are inserted behind its first value: they have the
same place in every derivation that the reader follows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedEOF, UnexpectedToken
from lark.lexer import Lexer
from lark.visitors import CollapseAmbiguities

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peripety.author.policy_author.tokens import WordToken

_GRAMMAR = "policy_sentence.lark"
_VALUES = {"NAME", "VALUE", "NUMBER"}
_MOST_TOKENS = 80
_MOST_DERIVATIONS = 128


@dataclass(frozen=True, slots=True)
class Derivation:
    """One derivation of a sentence or of a part of it.

    Attributes:
        rule: the grammar rule.
        children: derivations and tokens, in the order of the sentence.
    """

    rule: str
    children: tuple[Derivation | WordToken, ...]

    def __iter__(self) -> Iterator[Derivation | WordToken]:
        """Iterate over the children."""
        return iter(self.children)

    @property
    def parts(self) -> tuple[Derivation, ...]:
        """The children that are derivations."""
        return tuple(one for one in self.children if isinstance(one, Derivation))

    def find(self, *rules: str) -> tuple[Derivation, ...]:
        """Return the children of some rules."""
        return tuple(one for one in self.parts if one.rule in rules)

    def has(self, kind: str) -> bool:
        """Return True if a child is a token of the kind."""
        return any(one.kind == kind for one in self.children if not isinstance(one, Derivation))

    @property
    def tokens(self) -> tuple[WordToken, ...]:
        """All tokens below."""
        return tuple(
            token
            for one in self.children
            for token in (one.tokens if isinstance(one, Derivation) else (one,))
        )


class _TokenLexer(Lexer):
    """Lexer that passes terminals through."""

    def __init__(self, _conf: Any) -> None:
        """Ignore the configuration: the terminals are given."""

    def lex(self, data: Any) -> Iterator[Token]:  # type: ignore[override]
        """Yield a token for each terminal, with its index as its text."""
        for index, kind in enumerate(data):
            yield Token(kind, str(index))


@cache
def _parser() -> Lark:
    text = files("peripety.author.policy_author").joinpath(_GRAMMAR).read_text(encoding="utf-8")
    return Lark(text, parser="earley", lexer=_TokenLexer, ambiguity="explicit", keep_all_tokens=True)


def derive_sentence(tokens: Sequence[WordToken]) -> tuple[Derivation, ...]:
    """Return the derivations of a sentence; empty if there is none, or if there are too many to compare."""
    return _derive(tokens)[0]


def find_stop(tokens: Sequence[WordToken]) -> int:
    """Return the index of the first token at which no derivation continues; the length if each one fits."""
    return _derive(tokens)[1]


@dataclass(frozen=True, slots=True)
class _Parsed:
    trees: tuple[Tree[Any], ...]
    stop: int


def _derive(tokens: Sequence[WordToken]) -> tuple[tuple[Derivation, ...], int]:
    """Return the derivations, and the index of the first token at which no derivation continues."""
    kept = _shorten_lists([one.kind for one in tokens])
    parsed = _parse(tuple(tokens[place].kind for place in kept))
    ends = (*kept, len(tokens))
    parts = [tokens[first:end] for first, end in pairwise(ends)]
    return tuple(_to_derivation(one, parts) for one in parsed.trees), ends[parsed.stop]


def _shorten_lists(kinds: Sequence[str]) -> list[int]:
    """Return the places of the terminals without the middle of each list "a, b, c or d"."""
    kept: list[int] = []
    place = 0
    while place < len(kinds):
        kept.append(place)
        last = place
        while kinds[place] in _VALUES and [*kinds[last + 1 : last + 3]] == ["COMMA", kinds[place]]:
            last += 2
        behind = [one for one in kinds[last + 1 : last + 4] if one != "COMMA"][:2]
        is_list = len(behind) > 1 and behind[0] in {"AND", "OR"} and behind[1] == kinds[place]
        # The last value in front of "or" stays.
        place = last - 1 if is_list and last > place else place + 1
    return kept


@lru_cache(maxsize=16_384)
def _parse(kinds: tuple[str, ...]) -> _Parsed:
    """Return the trees for some terminals: sentences with the same terminals share them."""
    if not 0 < len(kinds) <= _MOST_TOKENS:
        return _Parsed((), 0)
    try:
        tree = _parser().parse(kinds)
    except UnexpectedEOF:
        return _Parsed((), len(kinds))
    except UnexpectedToken as error:
        return _Parsed((), int(error.token))
    if _count_derivations(tree) > _MOST_DERIVATIONS:
        return _Parsed((), 0)
    return _Parsed(tuple(CollapseAmbiguities().transform(tree)), len(kinds))


def _count_derivations(tree: Tree[Any] | Token) -> int:
    """Return the number of derivations in a tree with ambiguities, bounded."""
    if not isinstance(tree, Tree):
        return 1
    counts = [_count_derivations(child) for child in tree.children]
    if tree.data == "_ambig":
        return min(sum(counts), _MOST_DERIVATIONS + 1)
    total = 1
    for count in counts:
        total = min(total * count, _MOST_DERIVATIONS + 1)
    return total


def _to_derivation(tree: Tree[Any], parts: Sequence[Sequence[WordToken]]) -> Derivation:
    """Return the derivation of a tree; each of its terminals stands for some tokens."""
    children = tuple(
        one
        for child in tree.children
        for one in ((_to_derivation(child, parts),) if isinstance(child, Tree) else parts[int(child)])
    )
    return Derivation(str(tree.data), children)
