"""The role and the goals of the player, and the pattern that fits them, from the clauses of a tagged text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from peripety.author.text_analysis.phrases import Goal, Person, find_chunk_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from peripety.author.text_analysis.phrases import Chunk
    from peripety.author.text_analysis.words import Grammar, Word

_DUTY, _WISH, _ORDER, _ALSO, _GERUND, _ACT, _MAY = 3.0, 3.0, 3.0, 2.0, 2.0, 1.0, 0.5
_MOST_WORDS = 14
_LEAST = 2.0
"""The score below which a pattern is not chosen."""
_MARGIN = 0.25
"""The least lead over the second pattern."""
_CUE, _MOST_CUES, _MORE_WORDS, _OTHER_AIM = 1.0, 3, 0.5, 0.3
_NO_ROLE = ("time", "attribute", "state", "feeling", "quantity", "location", "motive", "relation")


@dataclass(frozen=True, slots=True)
class Aim:
    """Verb that may be the goal of the player.

    Attributes:
        place: the place of the verb.
        end: the place after its clause.
        trust: how surely the text names it as the goal; 3 is an explicit duty, wish or order.
        goal: the goal.
        tail: the lemmas after the verb, to the end of its clause.
    """

    place: int
    end: int
    trust: float
    goal: Goal
    tail: tuple[str, ...]


class ClauseReader:
    """Search for the role and the goals in one text."""

    def __init__(self, words: Sequence[Word], chunks: Sequence[Chunk], grammar: Grammar) -> None:
        self._words, self._chunks, self._grammar = words, chunks, grammar
        self._no_object = grammar.words("times", "before") | grammar.words("people", "who")
        self.role_chunk: Chunk | None = None
        self.role: Person | None = None
        self._find_role()

    def _at(self, place: int) -> Word | None:
        return self._words[place] if 0 <= place < len(self._words) else None

    def _find_role(self) -> None:
        for row in sorted(self._grammar.rows("roles").get("play", ()), key=lambda row: -len(row)):
            for place in range(len(self._words)):
                if [word.low for word in self._words[place : place + len(row)]] == list(
                    row
                ) and self._take_role(place, row):
                    return
        owning = self._grammar.pairs("roles", "owning")
        for place, word in enumerate(self._words[:-1]):
            following = self._words[place + 1]
            if word.tag == "player" and following.tag in ("verb", "noun") and following.lemma in owning:
                self.role = Person("", owning[following.lemma])
                return

    def _take_role(self, place: int, row: Sequence[str]) -> bool:
        if len(row) == 1 and not self._words[place].first:
            return False
        chunk = next((chunk for chunk in self._chunks if chunk.start == place + len(row)), None)
        if chunk is None or chunk.sense.startswith(_NO_ROLE) or chunk.definite in ("poss", "num"):
            return False
        person = chunk.has_class("person", "group", "animal")
        if not person and (chunk.definite != "det" or len(row) == 1):
            return False
        self.set_role(chunk)
        return True

    def set_role(self, chunk: Chunk) -> None:
        """Make a phrase the role of the player."""
        self.role_chunk = chunk
        group = chunk.is_first_class("group")
        text = " ".join([*(word.low for word in chunk.nouns[:-1]), chunk.head.lemma]) if chunk.nouns else ""
        if self._grammar.code != "en":
            text = " ".join(word.text for word in chunk.nouns)
        if group and chunk.of is not None and chunk.of.nouns:
            text = f"{text} of {chunk.of.head.low}"
        self.role = Person(chunk.name, text, is_group=group or chunk.is_plural, count=int(chunk.count or 1))

    def find_aims(self) -> list[Aim]:
        """Return all verbs that may be the goal, in order."""
        aims: list[Aim] = []
        for place, word in enumerate(self._words):
            if word.tag != "verb" or word.lemma in self._grammar.words("goals", "dull"):
                continue
            trust = self._trust(place, aims)
            if trust:
                aims.append(self._build_aim(place, trust))
        return aims

    def _trust(self, place: int, aims: Sequence[Aim]) -> float:
        """Return how surely a verb is the goal; 0 for a verb that is none."""
        word = self._words[place]
        if word.low != word.lemma:
            return _GERUND if place == 0 and word.low.endswith("ing") else 0
        left = self._skip_left(place - 1)
        before = self._at(left)
        if word.first or before is None:
            return _ORDER
        if before.low in self._grammar.words("goals", "openers"):
            return self._trust_after_opener(left, place, aims)
        if before.tag == "mark":
            return _ORDER - 0.5
        trusts = {
            "to": self._trust_infinitive,
            "modal": self._trust_after_modal,
            "player": self._trust_after_player,
        }
        return trusts[before.tag](left) if before.tag in trusts else 0

    def _trust_after_opener(self, left: int, place: int, aims: Sequence[Aim]) -> float:
        opens = self._words[left].first or (left > 0 and self._words[left - 1].tag in ("mark", "end"))
        also = bool(aims) and not self._ends_between(aims[-1].place, place)
        return _ORDER if opens else _ALSO if also else 0

    def _trust_after_modal(self, left: int) -> float:
        weak = self._words[left].low in self._grammar.words("goals", "weak")
        return (_MAY if weak else _DUTY) if self._is_player(left - 1) else 0

    def _trust_after_player(self, left: int) -> float:
        """Return the trust in a verb after a pronoun of the player: "let me act", "I act"."""
        let, verb = self._at(left - 1), self._words[left + 1]
        if let is not None and let.lemma == "let":
            return _ALSO
        owning = verb.lemma in self._grammar.pairs("roles", "owning")
        return 0 if owning or self._words[left].low in ("us", "me") else _ACT

    def _skip_left(self, place: int) -> int:
        while (word := self._at(place)) is not None and word.tag == "adv" and not word.first:
            place -= 1
        return place

    def _ends_between(self, first: int, last: int) -> bool:
        return any(word.tag == "end" for word in self._words[first:last])

    def _trust_infinitive(self, to: int) -> float:
        left = self._skip_left(to - 1)
        word = self._at(left)
        if word is None:
            return _ORDER
        if word.first and word.tag not in ("verb", "have"):
            return 0
        duty = self._grammar.words("goals", "duty")
        if word.tag in ("verb", "have", "adj", "noun") and word.lemma in duty | {"have", "has", "had"}:
            return _DUTY if self._is_player(left - 1) else 0
        if word.tag == "be":
            before = self._at(left - 1)
            if before is not None and before.lemma in self._grammar.words("goals", "purpose"):
                return _DUTY
        chunk = find_chunk_at(self._chunks, left)
        controller = chunk.start - 1 if chunk is not None else left - 1
        verb = self._at(controller)
        if verb is not None and verb.lemma in duty and (chunk is not None or word.tag in ("player", "pron")):
            return _WISH - 0.5 if self._is_player(controller - 1) else 0
        return 0

    def _is_player(self, place: int) -> bool:
        """Return True if the subject that ends at a place is the player, or may become it."""
        place = self._skip_left(place)
        word = self._at(place)
        while word is not None and word.tag in ("modal", "be", "neg", "have") and not word.first:
            if word.tag == "neg":
                return False
            place = self._skip_left(place - 1)
            word = self._at(place)
        if word is None or word.tag == "player":
            return True
        if word.low in ("who", "that") and place:
            return self._is_role_before(place - 1)
        if (
            word.tag == "num"
            and place > 1
            and self._words[place - 1].low in self._grammar.words("things", "of")
        ):
            place -= 2
        chunk = find_chunk_at(self._chunks, place)
        return word.tag in ("end", "mark", "conj") if chunk is None else self._is_player_chunk(chunk)

    def _is_player_chunk(self, chunk: Chunk) -> bool:
        """Return True for the role of the player; the first subject of a text without a role becomes it."""
        if chunk is self.role_chunk:
            return True
        opens = self._words[chunk.start].first
        fits = (
            chunk.has_class("person", "group.people", "animal")
            and chunk.definite != "poss"
            and not chunk.names
        )
        if self.role is None and opens and fits:
            self.set_role(chunk)
            return True
        return False

    def _is_role_before(self, place: int) -> bool:
        """Return True if the role of the player is the last person before a place in the same sentence."""
        for chunk in reversed([chunk for chunk in self._chunks if chunk.start <= place]):
            if chunk is self.role_chunk:
                return True
            if chunk.has_class("person", "group.people") or self._ends_between(chunk.start, place):
                return False
        return False

    def _build_aim(self, place: int, trust: float) -> Aim:
        word = self._words[place]
        end = self._find_end(place)
        tail = tuple(each.lemma or each.low for each in self._words[place + 1 : end] if each.tag != "mark")
        low = [each.low for each in self._words[place + 1 : end]]
        particle = next((each for each in low[:1] if each in self._grammar.words("goals", "particles")), "")
        target = self._find_object(place, end, particle)
        if not particle and target is not None and target.end < end:
            after = self._words[target.end]
            if after.low in self._grammar.words("goals", "particles") and after.tag in ("adv", "prep", "adj"):
                particle = after.low
        text = self._write(place, end)
        phrase = target.to_phrase() if target is not None else None
        return Aim(place, end, trust, Goal(word.lemma, phrase, text, particle), tail)

    def _find_end(self, place: int) -> int:
        """Return the place after the last word that belongs to the verb."""
        stops = self._grammar.words("goals", "stops")
        for end in range(place + 1, min(place + 1 + _MOST_WORDS, len(self._words))):
            word, after = self._words[end], self._at(end + 1)
            if word.tag == "end" or (word.tag == "mark" and word.text != '"'):
                return end
            if end > place + 1 and word.low in stops:
                return end
            if (
                word.tag == "conj"
                and after is not None
                and after.tag in ("player", "pron", "det", "poss", "name")
            ):
                return end
        return min(place + 1 + _MOST_WORDS, len(self._words))

    def _find_object(self, place: int, end: int, particle: str) -> Chunk | None:
        at = place + 1 + bool(particle)
        while at < end:
            word = self._words[at]
            chunk = find_chunk_at(self._chunks, at)
            if chunk is not None and chunk.start == at:
                return chunk
            if word.tag == "wh" or word.low in self._no_object:
                return None
            if word.tag == "pron":
                return self._resolve(word, place) if word.low in ("them", "him", "her") else None
            if word.tag in ("verb", "to") and at > place + 1 and word.tag == "verb":
                return None
            at += 1
        return None

    def _resolve(self, pronoun: Word, place: int) -> Chunk | None:
        """Return the person or persons of an earlier phrase that a pronoun means."""
        many = pronoun.low == "them"
        for chunk in reversed([chunk for chunk in self._chunks if chunk.end <= place]):
            group = chunk.is_plural or chunk.has_class("group.people")
            if chunk is not self.role_chunk and chunk.has_class("person", "group.people") and group == many:
                return chunk
        return None

    def _write(self, place: int, end: int) -> str:
        """Return the words of a verb phrase, with the player in the second person."""
        return " ".join("".join(self._iter_written(place, end)).split()).strip(" ,")

    def _iter_written(self, place: int, end: int) -> Iterator[str]:
        seen = self._grammar.pairs("perspective", "words")
        for at in range(place, end):
            word = self._words[at]
            text = word.lemma if at == place else seen.get(word.low, word.text)
            glued = at > place and self._words[at - 1].end == word.start
            yield text if glued or at == place else f" {text}"


def match_row(row: Sequence[str], verb: str, tail: Sequence[str]) -> bool:
    """Return True if the row is the verb and words that follow it in this order."""
    if row[0] != verb:
        return False
    rest = iter(tail)
    return all(word in rest for word in row[1:])


def score_patterns(
    main: Aim | None, aims: Sequence[Aim], lemmas: Sequence[str], grammar: Grammar
) -> Mapping[str, float]:
    """Return the score of each pattern with one, rounded, the best first."""
    scores: dict[str, float] = {}
    for aim in aims:
        weight = 1.0 if aim is main else _OTHER_AIM
        for pattern, rows in grammar.rows("patterns").items():
            best = max((_score_row(row, aim) for row in rows), default=0.0)
            scores[pattern] = scores.get(pattern, 0.0) + weight * best
    text = f" {' '.join(lemmas)} "
    for pattern, rows in grammar.rows("cues").items():
        hits = sum(f" {' '.join(row)} " in text for row in rows)
        scores[pattern] = scores.get(pattern, 0.0) + _CUE * min(hits, _MOST_CUES)
    found = [(pattern, round(score, 2)) for pattern, score in scores.items() if score > 0]
    return dict(sorted(found, key=lambda item: (-item[1], item[0])))


def _score_row(row: Sequence[str], aim: Aim) -> float:
    if not match_row(row, aim.goal.verb, aim.tail):
        return 0.0
    return aim.trust * (1 + _MORE_WORDS * (len(row) - 1)) / 1.2


def find_best_match(aim: Aim, grammar: Grammar) -> float:
    """Return the best score of a goal in any pattern."""
    rows = (row for rows in grammar.rows("patterns").values() for row in rows)
    return max((_score_row(row, aim) for row in rows), default=0.0)


def choose_pattern(scores: Mapping[str, float]) -> str:
    """Return the best pattern; empty if its score or its lead is too small."""
    ranked = [*scores.items(), ("", 0.0), ("", 0.0)]
    (best, score), (_, second) = ranked[0], ranked[1]
    return best if score >= _LEAST and score - second >= _MARGIN else ""
