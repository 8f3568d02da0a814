"""Required literals of a pattern, for the prefilter of a pattern index."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.sim.patterns.syntax import Assertion, Characters, Choice, Repeat, Sequence, fold

if TYPE_CHECKING:
    from collections.abc import Iterable

    from peripety.sim.patterns.syntax import Node

__all__ = ["Literals", "likelihood", "required"]

Literals = frozenset[str]
"""Folded texts of which a folded match contains at least one; the empty set never matches."""

MOST_LITERALS = 128
"""Maximum literals of one set."""
MOST_SETS = 3
"""Maximum sets of a pattern; a match contains a literal of each."""
MOST_LENGTH = 64
"""Maximum length of a literal, in characters."""

# Rough frequencies of characters in texts. In a word, only the first few letters are selective.
_LETTER, _TELLING, _RARE = 1 / 20, 4, 1 / 1000
_BETWEEN_WORDS = {" ": 1 / 6} | dict.fromkeys(".,-'\"\n", 1 / 50)

_NOTHING: Literals = frozenset([""])
_TOO_LIKELY = 0.005  # a literal that occurs in almost every text is useless as a filter

# The finite language of a tree (None if it is large), and the required sets of literals.
_Findings = tuple[Literals | None, tuple[Literals, ...]]


def likelihood(literals: Literals) -> float:
    """Return the estimated share of positions in a text at which one of the literals begins."""
    return sum(map(_share, literals))


def _share(text: str) -> float:
    share, letters = 1.0, 0
    for character in text:
        letters = letters + 1 if character.isalnum() else 0
        if letters == 0:
            share *= _BETWEEN_WORDS.get(character, _RARE)
        elif letters <= _TELLING:
            share *= _LETTER
    return share


def required(tree: Node) -> tuple[Literals, ...]:
    """Return the sets of literals that a tree requires, the most selective first.

    Sets that occur in almost every text are left out.
    """
    useful = {each for each in _findings(tree)[1] if likelihood(each) <= _TOO_LIKELY}
    return tuple(sorted(useful, key=lambda each: (likelihood(each), sorted(each)))[:MOST_SETS])


def _findings(tree: Node) -> _Findings:
    match tree:
        case Characters(ranges):
            if sum(last - first + 1 for first, last in ranges) > MOST_LITERALS:
                return None, ()
            whole = frozenset(fold(chr(code)) for first, last in ranges for code in range(first, last + 1))
            return whole, (whole,)
        case Assertion():
            return _NOTHING, ()
        case Sequence(parts):
            return _in_order(map(_findings, parts))
        case Choice(options):
            return _any_of([*map(_findings, options)])
        case Repeat(node, least, most):
            return _repeated(_findings(node), least, most)


def _repeated(findings: _Findings, least: int, most: int | None) -> _Findings:
    if least == 0:
        return _any_of([findings, (_NOTHING, ())]) if most == 1 else (None, ())
    whole, sets = _in_order([findings] * min(least, MOST_LENGTH))
    return (whole if most == least <= MOST_LENGTH else None), sets


def _in_order(findings: Iterable[_Findings]) -> _Findings:
    run, is_whole = _NOTHING, True
    sets: list[Literals] = []
    for whole, required_here in findings:
        longer = None if whole is None else _joined(run, whole)
        if longer is not None:
            run = longer
            continue
        is_whole = False
        sets += [run, *(required_here if whole is None else ())]
        run = _NOTHING if whole is None else whole
    return (run if is_whole else None), tuple(each for each in (*sets, run) if "" not in each)


def _any_of(findings: list[_Findings]) -> _Findings:
    best = _union([min(sets, key=likelihood, default=None) for _, sets in findings])
    return _union([whole for whole, _ in findings]), () if best is None else (best,)


def _joined(heads: Literals, tails: Literals) -> Literals | None:
    if len(heads) * len(tails) > MOST_LITERALS:
        return None
    joined = frozenset(head + tail for head in heads for tail in tails)
    return joined if max(map(len, joined), default=0) <= MOST_LENGTH else None


def _union(sets: list[Literals | None]) -> Literals | None:
    union: set[str] = set()
    for literals in sets:
        if literals is None:
            return None
        union |= literals
    return frozenset(union) if len(union) <= MOST_LITERALS else None
