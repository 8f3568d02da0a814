"""Texts that a match cannot do without: what an index over many patterns looks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.sim.patterns.syntax import Assertion, Characters, Choice, Repeat, Sequence, fold

if TYPE_CHECKING:
    from collections.abc import Iterable

    from peripety.sim.patterns.syntax import Node

__all__ = ["Literals", "likelihood", "required"]

Literals = frozenset[str]
"""Folded texts, one of which has to occur in a folded text; none at all can occur in no text."""

MOST_LITERALS = 128
"""How many literals are kept for one pattern."""
MOST_SETS = 3
"""How many sets of literals are kept, each of which has to occur."""
MOST_LENGTH = 64
"""How long a literal is kept, in characters."""

# How frequent characters are in texts, roughly; of a word those after the first few say nothing more.
_LETTER, _TELLING, _RARE = 1 / 20, 4, 1 / 1000
_BETWEEN_WORDS = {" ": 1 / 6} | dict.fromkeys(".,-'\"\n", 1 / 50)

_NOTHING: Literals = frozenset([""])
_TOO_LIKELY = 0.005  # where a literal is in almost any text, looking for it is in vain

# All texts that are like a tree, if they are few and short; and what it requires, one of each set.
_Findings = tuple[Literals | None, tuple[Literals, ...]]


def likelihood(literals: Literals) -> float:
    """How many of a text's characters begin one of these literals, roughly, as a share."""
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
    """Sets of literals, of each of which a tree requires one, the least likely set first.

    What is in almost any text is not among them.
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
