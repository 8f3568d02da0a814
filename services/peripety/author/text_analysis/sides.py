"""Sides of the persons of a text: against the player, absent, or in no state to help.

The rows of `sides` in `reading.toml` name the words around a person, with `_` for the person. The words of a
row are in this order in one clause; the last one before the person is the word right before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from peripety.author.text_analysis.phrases import Chunk
    from peripety.author.text_analysis.words import Grammar, Word

AGAINST, ABSENT, UNABLE = "against", "absent", "unable"
"""Sides of a person, besides the empty one."""

_PERSON = "_"
_REACH = 8
"""The number of words before or after a person that a row may use."""


def find_side(chunk: Chunk, words: Sequence[Word], grammar: Grammar) -> str:
    """Return the side of the person of a noun phrase; empty for one that may help.

    Args:
        chunk: the noun phrase.
        words: the words of the text.
        grammar: the tables of its language.
    """
    if not {chunk.head.lemma, chunk.head.low}.isdisjoint(grammar.words("sides", "children")):
        return UNABLE
    if chunk.head.lemma.casefold() in grammar.words("things", "harm") | grammar.words("things", "bad"):
        return AGAINST
    head = next(
        place for place in range(chunk.start, chunk.end) if words[place] in (*chunk.nouns, *chunk.names)
    )
    before = [*_read_clause(reversed(words[:head]))][::-1]
    after = [*_read_clause(_skip_mark(words[chunk.end :]))]
    lead = head - chunk.start + 1
    for side in (AGAINST, ABSENT, UNABLE):
        for row in grammar.rows("sides").get(side, ()):
            place = row.index(_PERSON)
            if _ends_with(before, row[:place], lead) and _contains(after, row[place + 1 :]):
                return side
    return ""


def _read_clause(words: Iterable[Word]) -> Iterable[Word]:
    """Yield words up to the end of the clause."""
    for count, word in enumerate(words):
        if word.tag in ("end", "mark") or count == _REACH:
            return
        yield word


def _skip_mark(words: Sequence[Word]) -> Sequence[Word]:
    """Return words without a mark at the start, as after a name in commas."""
    return words[1:] if words and words[0].tag == "mark" else words


def _ends_with(words: Sequence[Word], row: Sequence[str], lead: int) -> bool:
    """Return True if a row is in the words, its last one among the last `lead` words."""
    if not row:
        return True
    last = next((place for place in range(len(words) - 1, -1, -1) if _is_word(words[place], row[-1])), -1)
    return last >= max(len(words) - lead, 0) and _contains(words[:last], row[:-1])


def _contains(words: Sequence[Word], row: Sequence[str]) -> bool:
    """Return True if a row is in the words, in this order."""
    rest = iter(words)
    return all(any(_is_word(word, wanted) for word in rest) for wanted in row)


def _is_word(word: Word, wanted: str) -> bool:
    kind = {"not": "neg", "be": "be"}.get(wanted)
    return wanted in (word.lemma.casefold(), word.low) or (kind is not None and word.tag == kind)
