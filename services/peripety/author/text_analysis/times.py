"""The deadline, the amounts and the difficulty of a tagged text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.author.text_analysis.phrases import Amount, Deadline
from peripety.author.text_analysis.words import parse_number

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peripety.author.text_analysis.chunks import Chunk
    from peripety.author.text_analysis.words import Grammar, Word

_MOST_EVENT_WORDS = 8


def find_deadline(words: Sequence[Word], grammar: Grammar) -> tuple[Deadline, int, int] | None:
    """Return the time that the player has, with the places of its words; None without one.

    An explicit limit comes before an event, and an event before a length that is only named.
    """
    found = sorted(_iter_deadlines(words, grammar), key=lambda item: (-item[0], item[2]))
    return found[0][1:] if found else None


def _iter_deadlines(words: Sequence[Word], grammar: Grammar) -> Iterator[tuple[int, Deadline, int, int]]:
    units, points = grammar.pairs("times", "units"), grammar.pairs("times", "points")
    for place, word in enumerate(words):
        before = words[place - 1].low if place else ""
        if word.low in units and place and words[place - 1].tag == "num":
            number = parse_number(words[place - 1], grammar)
            start, end = place - 1, place + 1
            rank = _rank_span(words, start, end, grammar)
            if number and rank:
                limits = grammar.words("times", "limits") | grammar.words("times", "before")
                first = start - 1 if start and words[start - 1].low in limits else start
                yield rank, Deadline(number, units[word.low], _cite(words, first, end)), first, end
        elif word.low in grammar.words("times", "before") and _opens_event(words, place, grammar):
            end = _find_event_end(words, place, grammar)
            inner = [each for each in words[place:end] if each.low in points]
            unit = points[inner[-1].low] if inner else ""
            yield 4, Deadline(0, unit, _cite(words, place, end)), place, end
        elif word.low in points and before not in grammar.words("times", "past"):
            first, rank = place, 2
            while first and words[first - 1].low in grammar.words("times", "to_point"):
                first -= 1
                rank = 3
            if rank == 2 and word.low not in grammar.words("times", "near"):
                continue
            yield rank, Deadline(float(word.low in grammar.words("times", "near")), points[word.low], _cite(words, first, place + 1)), first, place + 1


def _rank_span(words: Sequence[Word], start: int, end: int, grammar: Grammar) -> int:
    """Return how surely a time span is the deadline; 0 for a span in the past or a rate."""
    before = {word.low for word in words[max(start - 2, 0) : start]}
    after = {word.low for word in words[end : end + 2] if word.tag != "end"}
    near = {word.low for word in words[end : end + 1]}
    if before & grammar.words("times", "past") or near & grammar.words("times", "past"):
        return 0
    if near & grammar.words("times", "back"):
        return 1
    left = words[start - 1].low if start else ""
    if left in grammar.words("times", "within") or after & grammar.words("times", "left"):
        return 5
    return 3 if left in grammar.words("times", "limits") else 2


def _opens_event(words: Sequence[Word], place: int, grammar: Grammar) -> bool:
    """Return True if a word such as "before" opens a time limit and not a place, an agent or an earlier time."""
    if place + 1 >= len(words):
        return False
    after = words[place + 1]
    if words[place].low in grammar.words("times", "only_points"):
        inner = words[place + 1 : place + 6]
        points = grammar.pairs("times", "points")
        return any(word.low in points or word.low in grammar.words("times", "ends") for word in inner)
    return after.tag not in ("end", "mark")


def _find_event_end(words: Sequence[Word], place: int, grammar: Grammar) -> int:
    end = place + 1
    points = grammar.pairs("times", "points")
    while end < min(place + 1 + _MOST_EVENT_WORDS, len(words)):
        word = words[end]
        if word.tag in ("end", "mark") or (word.tag == "conj" and end > place + 1):
            return end
        if end > place + 2 and word.low in grammar.words("times", "before") | grammar.words("goals", "stops"):
            return end
        if word.low in points and words[place].low in grammar.words("times", "only_points"):
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
            yield Amount(number, "percent", owner.to_phrase() if owner else None, _cite(words, place, place + 1))
        elif after in units:
            yield Amount(number, units[after], None, _cite(words, place, place + 2))
        elif chunk is not None:
            yield Amount(number, chunk.currency, chunk.to_phrase(), _cite(words, chunk.start, chunk.end))
        else:
            yield Amount(number, "", None, word.text)


def find_difficulty(words: Sequence[Word], grammar: Grammar) -> str:
    """Return the wanted difficulty: "easy", "normal", "hard", or empty.

    A word of difficulty counts beside a word about the game, or alone in its clause; elsewhere it belongs to the
    story.
    """
    about = grammar.words("difficulty", "about")
    for level in ("hard", "easy", "normal"):
        for place, word in enumerate(words):
            if word.low not in grammar.words("difficulty", level):
                continue
            near = {each.low for each in words[max(place - 3, 0) : place + 2]}
            left, right = words[place - 1] if place else None, words[place + 1] if place + 1 < len(words) else None
            alone = (left is None or left.tag in ("end", "mark")) and (right is None or right.tag in ("end", "mark"))
            named = right is not None and right.is_noun and right.low not in about
            if (near & about and not named) or alone:
                negated = near & grammar.words("difficulty", "not")
                return {"hard": "normal", "easy": "hard"}.get(level, level) if negated else level
    return ""
