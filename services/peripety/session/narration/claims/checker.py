"""Checker of prose, which compares the claims of each sentence with the record of the turn."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from peripety.author.text_analysis.languages import detect_language
from peripety.session.narration.claims.amounts import AmountClaims
from peripety.session.narration.claims.deeds import DeedClaims
from peripety.session.narration.claims.english import (
    SentenceBuffer,
    is_question,
    is_unreal,
    remove_speech,
    split_sentences,
)
from peripety.session.narration.claims.people import PeopleClaims

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.session.narration.claims.record import Contradiction, TurnFacts


_WORD = re.compile(r"[^\W\d_]+")


class ClaimChecker:
    """Checker of the prose of one turn.

    Args:
        facts: the turn.
    """

    def __init__(self, facts: TurnFacts) -> None:
        premise = facts.spec.get("premise")
        is_past = isinstance(premise, dict) and premise.get("tense") == "past"
        self._amounts = AmountClaims(facts)
        self._people = PeopleClaims(facts, is_past=is_past)
        self._deeds = DeedClaims(facts)
        words = {
            word
            for claims in (self._amounts, self._people, self._deeds)
            for text in claims.words
            for word in _WORD.findall(text.lower())
        }
        self._words = words - _COMMON

    def check_sentence(self, sentence: str) -> list[Contradiction]:
        """Return the claims of a sentence that contradict the record."""
        told = remove_speech(sentence)
        if is_question(told) or is_unreal(told):
            return []
        found = [*self._amounts.check(told), *self._people.check(told), *self._deeds.check(told)]
        return list(dict.fromkeys(found))

    def check(self, narrative: str, dialogue: Sequence[Mapping[str, Any]] = ()) -> list[Contradiction]:
        """Return the claims of a whole narration that contradict the record.

        Args:
            narrative: the prose.
            dialogue: spoken lines, `{entity_id, utterance}`. Their words are not claims, but the dead and the
                absent do not speak.
        """
        found = [one for sentence in split_sentences(narrative) for one in self.check_sentence(sentence)]
        for line in dialogue:
            wrong = self._people.check_speaker(line["entity_id"], line["utterance"], narrative)
            found += [] if wrong is None else [wrong]
        return found

    def find_claim_start(self, sentence: str) -> int | None:
        """Return the position of the first word of an incomplete sentence that a claim may need, if any.

        No claim begins before such a word, so the text before it can be released.
        """
        for found in _WORD.finditer(sentence):
            word = found[0].lower()
            # The last word may be the beginning of another one.
            is_open = found.end() == len(sentence)
            if word in self._words or (is_open and any(one.startswith(word) for one in self._words)):
                return found.start()
        return None


_COMMON = frozenset(
    {"the", "a", "an", "of", "and", "is", "it", "to", "in", "on", "be", "you", "your", "with", "for", "do"}
)


def is_checkable(narrative: str, language: str | None) -> bool:
    """Return True if claims of a narration can be checked: only English ones can.

    Args:
        narrative: the prose.
        language: the language option of the narrator; None or empty for any.
    """
    if language:
        return language.lower().startswith("en")
    return detect_language([word.casefold() for word in _WORD.findall(narrative)]).code == "en"


class ClaimFilter:
    """Streaming filter of one narration, which releases only sentences that do not contradict the record.

    The beginning of a sentence is released before its end if no word of it belongs to a claim.

    Args:
        checker: the checker; None to release everything.
    """

    def __init__(self, checker: ClaimChecker | None) -> None:
        self._checker = checker
        self._sentences = SentenceBuffer()
        self._released = 0
        self.has_contradiction = False
        """True if a sentence contradicts the record; nothing more is released."""

    def feed(self, text: str) -> str:
        """Feed the next piece of the text; return the text that can be released now."""
        if self._checker is None:
            return text
        if self.has_contradiction:
            return ""
        ready = ""
        for sentence in self._sentences.feed(text):
            if self._checker.check_sentence(sentence):
                self.has_contradiction = True
                return ready
            ready += sentence[self._released :]
            self._released = 0
        return ready + self._release_beginning(self._sentences.rest)

    def _release_beginning(self, rest: str) -> str:
        """Return the part of an incomplete sentence that can be released now."""
        assert self._checker is not None  # noqa: S101 - checked by the caller
        start = self._checker.find_claim_start(rest)
        end = max(self._released, len(rest) if start is None else start)
        piece, self._released = rest[self._released : end], end
        return piece

    def finish(self) -> str:
        """End the text; return the rest that was held back."""
        if self._checker is None or self.has_contradiction:
            return ""
        sentence = self._sentences.finish()
        if self._checker.check_sentence(sentence):
            self.has_contradiction = True
            return ""
        piece, self._released = sentence[self._released :], 0
        return piece
