"""Sides and wishes of the persons of a text, and things that do not work.

A person is against the player, absent, or in no state to help.

The rows of `sides` in `reading.toml` name the words around a person, with `_` for the person. The words of a
row are in this order in one clause; the last one before the person is the word right before it. A person is
also against the player by its noun, or by a verb of harm whose subject it is.
"""

from __future__ import annotations

from itertools import pairwise, takewhile
from typing import TYPE_CHECKING

from peripety.author.text_analysis.words import find_classes, find_lemmas

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from peripety.author.text_analysis.phrases import Chunk
    from peripety.author.text_analysis.words import Grammar, Word

AGAINST, ABSENT, UNABLE = "against", "absent", "unable"
"""Sides of a person, besides the empty one."""

_PERSON = "_"
_LONGEST_WISH = 48
_FAULT_REACH = 5
"""The number of words after a thing that may mean that it does not work."""
_REACH = 8
"""The number of words before or after a person that a row may use."""
_SUBJECTS = ("det", "poss", "player", "pron", "name", "num", "noun", "adj")
"""Tags of a word that may begin a subject."""


def find_side(chunk: Chunk, words: Sequence[Word], grammar: Grammar) -> str:
    """Return the side of the person of a noun phrase; empty for one that may help.

    Args:
        chunk: the noun phrase.
        words: the words of the text.
        grammar: the tables of its language.
    """
    if not {chunk.head.lemma, chunk.head.low}.isdisjoint(grammar.words("sides", "dependents")):
        return UNABLE
    if chunk.head.lemma.casefold() in grammar.words("things", "harm") | grammar.words("things", "bad"):
        return AGAINST
    is_foe = chunk.is_first_class("person.foe") or _does_harm(words[chunk.end :], grammar)
    if is_foe and not is_own(chunk, words, grammar):
        return AGAINST
    before, after, lead = _read_around(chunk, words, grammar)
    is_leaving = _wishes_to_move(chunk, words, grammar)
    is_thought = bool(after) and after[0].low in grammar.words("goals", "weak")
    suffered = _find_suffered(after) if grammar.code == "en" else frozenset[str]()
    # A refusal to eat is a need, and is not against the player.
    for side in (UNABLE, AGAINST, ABSENT):
        for row in grammar.rows("sides").get(side, ()):
            place = row.index(_PERSON)
            if (is_leaving if side == AGAINST else is_thought) and row[place + 1 :]:
                continue
            if chunk.belongs == "player" and [*row[place + 1 :]] == ["from"]:
                # "Stop my brother from leaving" is not about a foe.
                continue
            if side == AGAINST and "be" not in row and suffered.intersection(row[place + 1 :]):
                continue
            if _ends_with(before, row[:place], lead) and _contains(after, row[place + 1 :]):
                return side
    return ""


def _find_suffered(after: Sequence[Word]) -> frozenset[str]:
    """Return the verbs that are done to an English person, such as "is being ..." or "was ..."."""
    pairs = pairwise(word for word in after if word.tag != "adv")
    return frozenset(
        word.lemma
        for be, word in pairs
        if be.tag == "be" and word.low != word.lemma and not word.low.endswith("ing")
    )


def is_faulty(chunk: Chunk, words: Sequence[Word], grammar: Grammar) -> bool:
    """Return True if the words after a phrase mean that it does not work: "the beta is broken"."""
    clause: list[Word] = []
    end = chunk.of.end if chunk.of is not None else chunk.end
    for word in words[end : end + _FAULT_REACH]:
        if word.tag in ("end", "mark", "conj"):
            break
        clause.append(word)
    spoken = [word for word in clause if word.tag not in ("adv", "det")]
    bad = grammar.words("things", "faulty")
    if spoken and spoken[0].tag == "be" and any(word.low in bad for word in spoken):
        return True
    return any(starts_with(spoken, row) for row in grammar.rows("things_failing").get("rows", ()))


def is_idiom(chunk: Chunk, words: Sequence[Word], grammar: Grammar) -> bool:
    """Return True for the noun of an idiom of two prepositions, such as "out of order"."""
    before = words[max(chunk.start - 2, 0) : chunk.start]
    idioms = grammar.words("things", "idioms")
    return chunk.head.low in idioms and len(before) > 1 and all(word.tag == "prep" for word in before)


def has_doubts(chunk: Chunk, words: Sequence[Word], grammar: Grammar, kind: str = "doubting") -> bool:
    """Return True if a person contradicts the player in the text; with `leaving`, if it may leave."""
    before, after, lead = _read_around(chunk, words, grammar)
    rows = ((row, row.index(_PERSON)) for row in grammar.rows("sides").get(kind, ()))
    return any(
        _ends_with(before, row[:place], lead) and _contains(after, row[place + 1 :]) for row, place in rows
    )


def _read_around(chunk: Chunk, words: Sequence[Word], grammar: Grammar) -> tuple[list[Word], list[Word], int]:
    """Return the words of the clause before and after a person, and how far from its noun the last may be."""
    head = next(
        place for place in range(chunk.start, chunk.end) if words[place] in (*chunk.nouns, *chunk.names)
    )
    before = [*_read_clause(reversed(words[:head]))][::-1]
    rest = words[chunk.end :]
    if len(rest) > 1 and rest[0].tag == "mark" and rest[1].tag == "conj":
        # Another clause follows: "I have one, and the other is gone".
        return before, [], head - chunk.start + 1
    after = [*_read_clause(_skip_mark(rest))]
    return before, after[: _find_clause_end(chunk, words, after, grammar)], head - chunk.start + 1


def _find_clause_end(chunk: Chunk, words: Sequence[Word], after: Sequence[Word], grammar: Grammar) -> int:
    """Return the place of a conjunction with a subject of its own among the words after a person.

    Two subjects of one verb, as in "the first and the second are ill", are in one clause. A subordinate
    clause is another one: "the first after the second dies".
    """
    others = grammar.words("sides", "subordinates")
    lead = words[chunk.start - 1] if chunk.start else None
    is_subject = lead is None or lead.tag in ("mark", "end", "conj", "adv")
    for place, (word, then) in enumerate(pairwise(after)):
        if word.low in others:
            return place
        if word.tag == "conj" and then.tag in _SUBJECTS and not (is_subject and place == 0):
            return place
    return len(after)


def is_own(chunk: Chunk, words: Sequence[Word], grammar: Grammar) -> bool:
    """Return True if a noun phrase belongs to the player, or the player leads it."""
    if chunk.belongs:
        return chunk.belongs == "player"
    start = chunk.start
    leading = grammar.pairs("roles", "owning")
    clause = [*_read_clause(reversed(words[:start]))]
    return any(word.lemma in leading for word in clause) and any(word.tag == "player" for word in clause)


def _does_harm(after: Sequence[Word], grammar: Grammar) -> bool:
    """Return True if the verb after a person is one of harm, such as in "they have stolen it"."""
    harming, passing = grammar.words("sides", "harming"), grammar.words("sides", "passing")
    clause = [*_read_clause(after)]
    led = (*passing, *grammar.words("sides", "perfect"))
    first = next(
        (word for word in clause if word.tag not in ("be", "have", "adv") and word.lemma not in led), None
    )
    if first is None:
        return False
    # A participle may have the tag of an adjective.
    base = find_lemmas(first.low, grammar.code)[-1] if len(led) > len(passing) else first.low
    if {first.lemma.casefold(), first.low, base} & harming:
        # The object of the verb follows; without one, the person may have suffered it.
        return True
    # A German participle is at the end of its clause.
    is_split = grammar.verbs_last and bool(clause) and clause[0].tag == "have"
    return is_split and any(clause[-1].low == _participle(verb) for verb in harming)


def _participle(verb: str) -> str:
    """Return the weak German participle of a verb with a prefix that stays."""
    return f"{verb.removesuffix('en')}t"


def find_wish(chunk: Chunk, words: Sequence[Word], grammar: Grammar, rows: str = "wishing") -> str:
    """Return the verb phrase of what a person wants, or refuses; empty without one.

    Args:
        chunk: the noun phrase of the person.
        words: the words of the text.
        grammar: the tables of its language.
        rows: the name of the rows of words before the verb phrase: "wishing" or "refusing".
    """
    after = _skip_mark(words[chunk.end :])
    seen = grammar.pairs("perspective", "words")
    for row in grammar.rows("sides").get(rows, ()):
        lead = 1 if after and after[0].tag == "adv" and not starts_with(after, row) else 0
        if not starts_with(after[lead:], row):
            continue
        told = [*takewhile(lambda word: not _ends_wish(word, grammar), after[lead + len(row) :])]
        while told and told[-1].tag in ("prep", "det", "poss", "adj", "conj"):
            told.pop()
        verb = told[-1 if grammar.verbs_last else 0] if told else None
        if verb is None or verb.tag != "verb" or any(word.tag == "neg" for word in told):
            continue
        gap = "" if grammar.code == "zh" else " "
        text = gap.join(seen.get(word.low, word.text) for word in told)
        return text if len(text) <= _LONGEST_WISH else ""
    return ""


def _wishes_to_move(chunk: Chunk, words: Sequence[Word], grammar: Grammar) -> bool:
    """Return True for an English person who wants to go elsewhere, which does not oppose the player."""
    verb = find_wish(chunk, words, grammar).partition(" ")[0]
    return bool(verb) and "verb.motion" in find_classes(verb)[:1]


def is_player_alone(
    words: Sequence[Word], chunks: Sequence[Chunk], role: Chunk | None, grammar: Grammar
) -> bool:
    """Return True if the player, one person, has no companion by the words of the text.

    Args:
        words: the words of the text.
        chunks: its noun phrases.
        role: the phrase of the player; None without one.
        grammar: the tables of its language.
    """
    many = grammar.words("roles", "many")
    if (role is not None and role.is_plural) or any(word.low in many for word in words):
        return False
    lone = grammar.words("roles", "lone")
    if role is not None and any(word.low in lone for word in words[role.start : role.end]):
        return True
    rows = grammar.rows("alone").get("rows", ())
    if any(starts_with(words[place:], row) for row in rows for place in range(len(words))):
        return True
    alone = grammar.words("roles", "alone")
    places = (place for place, word in enumerate(words) if word.low in alone)
    return any(_is_about_player(place, words, chunks, role, grammar) for place in places)


def _is_about_player(
    place: int, words: Sequence[Word], chunks: Sequence[Chunk], role: Chunk | None, grammar: Grammar
) -> bool:
    """Return True if the subject of the clause of a word is the player, or missing."""
    starts = (at + 1 for at in range(place - 1, -1, -1) if words[at].tag in ("mark", "end", "conj"))
    start = next(starts, 0)
    clause = words[start:place]
    if any(word.tag in ("neg", "pron") or word.lemma in grammar.words("goals", "leaving") for word in clause):
        return False
    if any(word.tag == "player" for word in clause):
        return True
    subject = next((chunk for chunk in chunks if start <= chunk.start < place), None)
    if subject is None or any(word.tag in ("prep", "verb") for word in words[start : subject.start]):
        # The clause is an order, or has the subject of the one before it.
        before = [*takewhile(lambda word: word.tag != "end", reversed(words[:start]))]
        return any(word.tag == "player" for word in before) or not any(word.is_noun for word in before)
    return subject is role or (not subject.start and role is None and not _names_player(words))


def _names_player(words: Sequence[Word]) -> bool:
    return any(word.tag == "player" for word in words)


def starts_with(words: Sequence[Word], row: Sequence[str]) -> bool:
    """Return True if a text starts with the words of a row."""
    return len(words) >= len(row) and all(map(_is_word, words, row))


def _ends_wish(word: Word, grammar: Grammar) -> bool:
    return word.tag in ("end", "mark", "conj", "wh") or word.low in grammar.words("goals", "stops")


def _read_clause(words: Iterable[Word]) -> Iterable[Word]:
    """Yield words up to the end of the clause."""
    for count, word in enumerate(words):
        if word.tag in ("end", "mark") or count == _REACH:
            return
        yield word


def _skip_mark(words: Sequence[Word]) -> Sequence[Word]:
    """Return words without a mark at the start, as after a name in commas; a semicolon ends the clause."""
    return words[1:] if words and words[0].tag == "mark" and words[0].text not in ";:" else words


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
    kind = {"not": "neg", "be": "be", "have": "have"}.get(wanted)
    return wanted in (word.lemma.casefold(), word.low) or (kind is not None and word.tag == kind)
