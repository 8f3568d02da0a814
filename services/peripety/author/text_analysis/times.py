"""The deadline, the amounts and the difficulty of a tagged text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.author.text_analysis.phrases import Amount, Deadline
from peripety.author.text_analysis.words import parse_number

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peripety.author.text_analysis.phrases import Chunk
    from peripety.author.text_analysis.words import Grammar, Word

_MOST_EVENT_WORDS = 8
_NEAR = 3
_PAST_FORMS = ("was", "were", "had", "did", "came", "went", "left", "began")
_LIMIT, _EVENT, _MOMENT, _NAMED = 5, 4, 3, 2
"""Ranks of times as deadlines."""


def find_deadline(words: Sequence[Word], grammar: Grammar) -> tuple[Deadline, int, int] | None:
    """Return the time that the player has, with the places of its words; None without one.

    An explicit limit comes before an event, and an event before a length that is only named.
    """
    found = sorted(_iter_deadlines(words, grammar), key=lambda item: (-item[0], item[2]))
    return found[0][1:] if found else None


def _iter_deadlines(words: Sequence[Word], grammar: Grammar) -> Iterator[tuple[float, Deadline, int, int]]:
    """Yield each possible deadline with its rank and the places of its words."""
    units, points = grammar.pairs("times", "units"), grammar.pairs("times", "points")
    for place, word in enumerate(words):
        before = words[place - 1].low if place else ""
        if word.low in units and place and words[place - 1].tag == "num":
            yield from _read_length(words, place, grammar)
        elif word.low in grammar.words("times", "before") and _opens_event(words, place, grammar):
            end = _find_event_end(words, place, grammar)
            if _is_over(words, place, end) or all(word.tag == "pron" for word in words[place + 1 : end]):
                continue
            inner = [each for each in words[place:end] if each.low in points]
            unit = points[inner[-1].low] if inner else ""
            yield _EVENT, Deadline(0, unit, _cite(words, place, end)), place, end
        elif (
            word.low in grammar.words("times", "after") and place and words[place - 1].tag in ("noun", "verb")
        ):
            first = place
            while first and words[first - 1].tag in ("noun", "verb", "owner", "name"):
                first -= 1
            yield _EVENT, Deadline(0, "", _cite(words, first, place + 1)), first, place + 1
        elif word.low in points and before not in grammar.words("times", "past"):
            yield from _read_moment(words, place, grammar)


def _read_length(
    words: Sequence[Word], place: int, grammar: Grammar
) -> Iterator[tuple[float, Deadline, int, int]]:
    """Yield the length of time whose unit is at a place."""
    number = parse_number(words[place - 1], grammar)
    start, end = place - 1, place + 1
    rank = _rank_span(words, start, end, grammar)
    if number and rank:
        limits = grammar.words("times", "limits") | grammar.words("times", "before")
        first = start - 1 if start and words[start - 1].low in limits else start
        unit = grammar.pairs("times", "units")[words[place].low]
        yield rank, Deadline(number, unit, _cite(words, first, end)), first, end


def _read_moment(
    words: Sequence[Word], place: int, grammar: Grammar
) -> Iterator[tuple[float, Deadline, int, int]]:
    """Yield the moment at a place, with the words before it that belong to it."""
    low = words[place].low
    near = low in grammar.words("times", "near")
    first = place
    while first and words[first - 1].low in grammar.words("times", "to_point"):
        first -= 1
    if near or first < place:
        unit = grammar.pairs("times", "points")[low]
        rank = _MOMENT if first < place else _NAMED
        yield rank, Deadline(float(near), unit, _cite(words, first, place + 1)), first, place + 1


def _rank_span(words: Sequence[Word], start: int, end: int, grammar: Grammar) -> float:
    """Return how surely a time span is the deadline; 0 for a span in the past."""
    times = grammar.words
    left = words[start - 1].low if start else ""
    before = {word.low for word in words[max(start - 2, 0) : start]}
    after = {word.low for word in words[end : end + 2] if word.tag != "end"}
    near = {word.low for word in words[end : end + 1]}
    near.add("_".join(word.low for word in words[end : end + _NEAR]))
    if (before | near) & times("times", "past") or near & times("times", "back"):
        return 0
    if left in times("times", "within") or after & times("times", "left"):
        return _LIMIT
    return _MOMENT if left in times("times", "limits") else _NAMED


def _opens_event(words: Sequence[Word], place: int, grammar: Grammar) -> bool:
    """Return True if a word such as "before" opens a time limit."""
    if place + 1 >= len(words):
        return False
    after = words[place + 1]
    if words[place].low in grammar.words("times", "only_points"):
        inner = words[place + 1 : place + 6]
        points = grammar.pairs("times", "points")
        return any(word.low in points or word.low in grammar.words("times", "ends") for word in inner)
    return after.tag not in ("end", "mark")


def _is_over(words: Sequence[Word], place: int, end: int) -> bool:
    """Return True for an event of the past: "before I was born", but not "get out before they came"."""
    verb = next((word for word in words[place:end] if word.tag in ("verb", "be", "have", "modal")), None)
    if verb is None or not (verb.low in _PAST_FORMS or (verb.tag == "verb" and verb.low.endswith("ed"))):
        return False
    start = next((at + 1 for at in range(place - 1, -1, -1) if words[at].tag in ("end", "mark")), 0)
    return not any(word.tag in ("to", "modal") for word in words[start:place])


def _find_event_end(words: Sequence[Word], place: int, grammar: Grammar) -> int:
    end = place + 1
    points = grammar.pairs("times", "points")
    while end < min(place + 1 + _MOST_EVENT_WORDS, len(words)):
        word = words[end]
        if word.tag in ("end", "mark") or (word.tag in ("conj", "to") and end > place + 1):
            return end
        if end > place + 2 and word.low in grammar.words("times", "before") | grammar.words("goals", "stops"):
            return end
        if (
            word.low in points
            and (words[place].low in grammar.words("times", "only_points") or end <= place + _NEAR - 1)
            and not (end + 1 < len(words) and words[end + 1].tag == "noun")
        ):
            return end + 1
        end += 1
    return end


def _cite(words: Sequence[Word], start: int, end: int) -> str:
    text = ""
    for place in range(start, end):
        glued = place > start and words[place - 1].end == words[place].start
        text += words[place].text if glued or not text else f" {words[place].text}"
    return text


def find_amounts(
    words: Sequence[Word], chunks: Sequence[Chunk], span: tuple[int, int], grammar: Grammar
) -> Iterator[Amount]:
    """Yield the numbers of a text outside of a span, each with what it counts."""
    units = grammar.pairs("times", "units")
    for place, word in enumerate(words):
        number = parse_number(word, grammar) if word.tag == "num" else None
        if number is None or span[0] <= place < span[1]:
            continue
        after = words[place + 1].low if place + 1 < len(words) else ""
        chunk = next((chunk for chunk in chunks if chunk.start <= place < chunk.end), None)
        if word.text.endswith("%") or after in grammar.words("times", "percent"):
            owner = next((chunk for chunk in reversed(chunks) if chunk.end <= place), None)
            yield Amount(
                number, "percent", owner.to_phrase() if owner else None, _cite(words, place, place + 1)
            )
        elif after in units:
            yield Amount(number, units[after], None, _cite(words, place, place + 2))
        elif chunk is not None:
            yield Amount(number, chunk.currency, chunk.to_phrase(), _cite(words, chunk.start, chunk.end))
        else:
            yield Amount(number, "", None, word.text)


def find_difficulty(words: Sequence[Word], grammar: Grammar) -> str:
    """Return the wanted difficulty: "easy", "normal", "hard", or empty.

    A word of difficulty counts beside a word about the game, or alone in its clause; elsewhere it belongs to
    the story.
    """
    for level in ("hard", "easy", "normal"):
        for place, word in enumerate(words):
            if word.low in grammar.words("difficulty", level) and _is_about_game(words, place, grammar):
                near = {each.low for each in words[max(place - _NEAR, 0) : place]}
                negated = bool(near & grammar.words("difficulty", "not"))
                return {"hard": "normal", "easy": "hard"}.get(level, level) if negated else level
    return ""


def _is_about_game(words: Sequence[Word], place: int, grammar: Grammar) -> bool:
    about = grammar.words("difficulty", "about")
    near = {word.low for word in words[max(place - _NEAR, 0) : place + 2]}
    after = words[place + 1 : place + 2]
    first = place
    while first and words[first - 1].tag in ("adv", "neg"):
        first -= 1
    alone = all(word.tag in ("end", "mark") for word in (*words[max(first - 1, 0) : first], *after))
    named = any(word.is_noun and word.low not in about for word in after)
    return alone or (bool(near & about) and not named)
