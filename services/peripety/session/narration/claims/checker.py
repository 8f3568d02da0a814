"""Checker of prose, which compares the claims of each sentence with the record of the turn."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from peripety.author.text_analysis.languages import detect_language
from peripety.session.narration.claims.amounts import AmountClaims
from peripety.session.narration.claims.conduct import has_machinery
from peripety.session.narration.claims.deeds import DeedClaims
from peripety.session.narration.claims.endings import EndingClaims
from peripety.session.narration.claims.english import (
    SentenceBuffer,
    is_question,
    remove_speech,
    split_sentences,
)
from peripety.session.narration.claims.grammar import read_sentence
from peripety.session.narration.claims.groups import resolve_pronouns
from peripety.session.narration.claims.lives import LifeClaims
from peripety.session.narration.claims.names import name_table
from peripety.session.narration.claims.possessions import PossessionClaims
from peripety.session.narration.claims.presence import PresenceClaims
from peripety.session.narration.claims.record import Contradiction
from peripety.session.narration.claims.tagger import tag_tokens

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.session.narration.claims.record import TurnFacts


_WORD = re.compile(r"[^\W\d_]+")


class ClaimChecker:
    """Checker of the prose of one turn.

    Args:
        facts: the turn.
    """

    def __init__(self, facts: TurnFacts) -> None:
        premise = facts.spec.get("premise")
        style = premise if isinstance(premise, dict) else {}
        is_past = style.get("tense") == "past"
        self._you = facts.after.you
        self._is_third = style.get("person") == "third"
        self._amounts = AmountClaims(facts, is_past=is_past)
        self._lives = LifeClaims(facts, is_past=is_past)
        self._presence = PresenceClaims(facts, is_past=is_past)
        self._possessions = PossessionClaims(facts, is_past=is_past)
        self._deeds = DeedClaims(facts)
        self._endings = EndingClaims(facts, is_past=is_past)
        self._names = name_table(facts, self._deeds.deeds)
        self._endings.read_endings(self._names)
        self._words = (self._names.words | self._deeds.words | self._endings.words) - _COMMON
        self._beginnings = frozenset(word[:size] for word in self._words for size in range(1, len(word) + 1))

    def check_sentence(self, sentence: str, before: str = "") -> list[Contradiction]:
        """Return the claims of a sentence that contradict the record.

        Args:
            sentence: the sentence.
            before: the sentence before it, to which pronouns may refer.
        """
        told = remove_speech(sentence)
        if has_machinery(told):
            return [Contradiction("words", sentence.strip(), "a story has no words of the program")]
        if is_question(told):
            return []
        context = tag_tokens(remove_speech(before), self._names) if before else []
        resolve_pronouns(context, self._you, is_third=self._is_third)
        parsed = read_sentence(told, self._names, self._you, context, is_third=self._is_third)
        found = [
            *self._amounts.check(parsed, sentence, context),
            *self._lives.check(parsed, sentence),
            *self._presence.check(parsed, sentence),
            *self._possessions.check(parsed, sentence),
            *self._endings.check(parsed, sentence),
            *self._deeds.check(parsed, sentence),
        ]
        return list(dict.fromkeys(found))

    def check(self, narrative: str, dialogue: Sequence[Mapping[str, Any]] = ()) -> list[Contradiction]:
        """Return the claims of a whole narration that contradict the record.

        Args:
            narrative: the prose.
            dialogue: spoken lines, `{entity_id, utterance}`. Their words are not claims, but the dead and the
                absent do not speak.
        """
        found, before = [], ""
        for sentence in split_sentences(narrative):
            found += self.check_sentence(sentence, before)
            before = sentence
        for line in dialogue:
            wrong = self._presence.check_speaker(line["entity_id"], line["utterance"], narrative)
            found += [] if wrong is None else [wrong]
        return found

    def find_claim_start(self, sentence: str, scanned: int = 0) -> tuple[int | None, int]:
        """Return the position of the first word of an incomplete sentence that a claim may need, if any.

        No claim begins before such a word, so the text before it can be released.

        Args:
            sentence: the beginning of a sentence.
            scanned: number of its characters that need no search.

        Returns:
            The position, and the number of characters that need no further search.
        """
        for found in _WORD.finditer(sentence, scanned):
            word = found[0].lower()
            # The last word may be the beginning of another one.
            is_open = found.end() == len(sentence)
            if word in self._words or (is_open and word in self._beginnings):
                return found.start(), found.start()
            if not is_open:
                scanned = found.end()
        return None, scanned


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
        self._released = self._scanned = 0
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
            self._released = self._scanned = 0
        return ready + self._release_beginning(self._sentences.rest)

    def _release_beginning(self, rest: str) -> str:
        """Return the part of an incomplete sentence that can be released now."""
        assert self._checker is not None  # noqa: S101 - checked by the caller
        start, self._scanned = self._checker.find_claim_start(rest, self._scanned)
        if start is not None and self._sentences.may_have_ended:
            # Nothing is held back from a sentence that is complete as it is; more text is checked with it.
            if self._checker.check_sentence(rest):
                self.has_contradiction = True
                return ""
            start = None
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
