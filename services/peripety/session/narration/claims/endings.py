"""Claims about endings and dice: that a run ended, or that a test succeeded or failed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from peripety.session.narration.claims.clauses import Clause
from peripety.session.narration.claims.english import (
    Phrases,
    alternatives,
    drop_reported,
    is_negative,
    is_unreal,
    is_unsure,
    split_clauses,
    split_sentences,
    verb_forms,
)
from peripety.session.narration.claims.grammar import read_sentence
from peripety.session.narration.claims.record import Contradiction
from peripety.session.narration.claims.words import PARTICIPLE, verb_table, words
from peripety.session.state_facts import to_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.session.narration.claims.clauses import Group, Sentence
    from peripety.session.narration.claims.record import TurnFacts
    from peripety.session.narration.claims.words import NameTable


_WRONG_ENDINGS = {
    "ongoing": {"won", "lost", "over"},
    "won": {"lost", "on", "not_won"},
    "lost": {"won", "on", "not_lost"},
    "survived": {"on"},
}
_GUESSES = {"on", "not_won", "not_lost"}
_MIN_MESSAGE_CHARACTERS = 12
_HAD = re.compile(r"\bhad\b(?! to\b)|(?<=\w)['\u2019]d\b(?= \w+(?:ed|en|ne|n|t)\b)", re.IGNORECASE)
_NOT_WORDS = re.compile(r"[^\w]+")
_ARTICLES = words("the a an your some his her their my our")


class EndingClaims:
    """Checker of claims about the end of the run, and about dice.

    Args:
        facts: the turn.
        is_past: True if the past is the tense of the story.
    """

    def __init__(self, facts: TurnFacts, *, is_past: bool = False) -> None:
        self._facts = facts
        self._is_past = is_past
        self._endings: list[tuple[str, Clause | str]] = []
        self._titles: set[str] = set()
        self._messages = _unreached_messages(facts)
        you = alternatives(facts.after.names.get(facts.after.you, ()))
        kinds = alternatives(word for roll in facts.rolls for word in _related_words(roll.kind))
        self._phrases = Phrases("deeds", {"you": rf"\b(?:you|I|we|{you})\b", "kinds": kinds})
        messages = (text.partition(" ")[0] for text in self._messages)
        self.words = frozenset({*self._phrases.words("signals"), *messages})
        """The words with which a claim may begin."""

    def read_endings(self, names: NameTable) -> None:
        """Read the descriptions and messages of the endings, with names."""
        ends = [*self._facts.spec.get("loss_conditions", ()), *(self._facts.spec.get("win_conditions") or ())]
        for end in ends:
            title = str(end.get("name") or end["id"])
            name = to_words(title).split()
            if len(name) > 1 and end["id"] != self._facts.status.condition:
                self._titles.add(_normalize(title))
            verbs = (
                [one.lemma for one in verb_table().get(name[0], ()) if one.form == PARTICIPLE]
                if name and len(name) < 3  # noqa: PLR2004 - `thrown out`
                else []
            )
            self._endings += [(end["id"], verb) for verb in verbs[:1]]
            for text in (str(end.get("description") or ""), str(end.get("message") or "")):
                for sentence in split_sentences(text):
                    parsed = read_sentence(sentence, names, self._facts.after.you, is_third=True)
                    plain = (one for one in parsed.clauses if not one.subordinator and not one.is_negative)
                    self._endings += [(end["id"], clause) for clause in plain]

    def check(self, sentence: Sentence, text: str) -> Iterator[Contradiction]:
        """Yield the claims of a sentence that contradict the record.

        Args:
            sentence: the sentence without speech.
            text: the sentence.
        """
        yield from self._check_described_ending(sentence, text)
        told = drop_reported(sentence.text[sentence.attributed :])
        if not is_unreal(told):
            yield from self._check_ending(text, told)
            yield from self._check_rolls(text, told)

    def _check_ending(self, sentence: str, told: str) -> Iterator[Contradiction]:
        text = _normalize(sentence)
        if self._is_past:
            # What had been done is what is so, in a story in the past.
            told = _HAD.sub("have", told)
        clauses = dict.fromkeys([told.strip(" .!\n"), *split_clauses(told)])
        claimed = {claim for clause in clauses for claim in self._claimed_endings(clause)}
        wrong = _WRONG_ENDINGS[self._facts.status.kind]
        # A narrator that does not know the end of the turn may guess that the run continues.
        wrong = wrong if self._facts.knows_status else wrong - _GUESSES
        if claimed & wrong or any(message in text for message in self._messages) or text in self._titles:
            kind = self._facts.status.kind
            expected = "the run has not ended" if kind == "ongoing" else f"the run has ended: {kind}"
            yield Contradiction("ending", sentence.strip(), expected)

    def _claimed_endings(self, clause: str) -> Iterator[str]:
        if not is_unsure(clause) and self._phrases.search("nothing_left", clause):
            yield "over"
        for claim in ("on", "not_won", "not_lost"):
            if self._phrases.search(claim, clause):
                yield claim
                return
        if not is_negative(clause) and not is_unsure(clause):
            yield from (claim for claim in ("won", "lost", "over") if self._phrases.search(claim, clause))

    def _check_described_ending(self, sentence: Sentence, text: str) -> Iterator[Contradiction]:
        """Check clauses that repeat the description of an ending: `the guests leave`."""
        for ending, wanted in self._endings:
            if ending == self._facts.status.condition:
                continue
            for clause in sentence.clauses:
                is_now = (
                    clause.is_asserted and not clause.is_negative and (self._is_past or not clause.is_past)
                )
                is_told = (
                    _says(clause, wanted) if isinstance(wanted, Clause) else self._befalls(clause, wanted)
                )
                if is_now and is_told:
                    kind = self._facts.status.kind
                    expected = "the run has not ended" if kind == "ongoing" else f"the run has ended: {kind}"
                    yield Contradiction("ending", text.strip(), expected)
                    return

    def _befalls(self, clause: Clause, verb: str) -> bool:
        """Return True if the player does, or suffers, the verb that names an ending: `escaped`."""
        if clause.base != verb or not (
            clause.is_perfect or clause.is_passive or clause.is_past is self._is_past
        ):
            return False
        you = self._facts.after.you
        suffers = any(you in one.keys("entity") for one in clause.objects)
        return suffers or (
            you in clause.subjects() and not clause.objects and (clause.is_passive or not clause.phrases)
        )

    def _check_rolls(self, sentence: str, told: str) -> Iterator[Contradiction]:
        results = {roll.success for roll in self._facts.rolls}
        if len(results) != 1:
            return
        has_success = results == {True}
        for clause in split_clauses(told):
            claimed = None if is_unsure(clause) else self._claimed_result(clause)
            if claimed is not None and claimed is not has_success:
                expected = "the roll succeeded" if has_success else "the roll failed"
                yield Contradiction("action", sentence.strip(), expected)
                return

    def _claimed_result(self, clause: str) -> bool | None:
        """Return True if a clause states that a test succeeded, False if that it failed, else None."""
        if self._phrases.search("no_failure", clause):
            return True
        if self._phrases.search("failure", clause):
            return False
        return True if self._phrases.search("success", clause) and not is_negative(clause) else None


def _says(clause: Clause, wanted: Clause) -> bool:
    """Return True if a clause has the verb, the subject and the object of another one."""
    if clause.base != wanted.base or clause.is_passive is not wanted.is_passive:
        return False
    if clause.subject is None or wanted.subject is None:
        return False
    if not _is_same_group(clause.subject, wanted.subject):
        return False
    if wanted.base in {"be", "have", "get"}:
        told = set(wanted.rest_words) - _ARTICLES
        return bool(told) and told <= set(clause.rest_words)
    goals = [
        *wanted.objects[:1],
        *(group for word, group in wanted.phrases[:1] if word in words("with to on into")),
    ]
    known = [*clause.objects, *(group for _, group in clause.phrases)]
    particles = (
        {token.word for token in wanted.rest[:1] if token.tag in {"prep", "adv"}}
        if not wanted.objects
        else set()
    )
    return all(any(_is_same_group(one, goal) for one in known) for goal in goals) and (
        not particles or bool(particles & set(clause.rest_words[:2]))
    )


def _is_same_group(first: Group, second: Group) -> bool:
    same = set(first.head.refs) & set(second.head.refs)
    return bool(same) or (first.word == second.word and not first.head.refs)


def _unreached_messages(facts: TurnFacts) -> list[str]:
    """Return the normalized messages of the endings that were not reached."""
    spec, reached = facts.spec, facts.status.condition
    names = {
        _normalize(str(rule.get(key) or ""))
        for group in ("actions", "random_events")
        for rule in spec.get(group, ())
        for key in ("name", "description")
    }
    ends = [*spec.get("loss_conditions", ()), *(spec.get("win_conditions") or ())]
    texts = [(end["id"] == reached, _normalize(str(end.get("message") or ""))) for end in ends]
    said = names | {text for is_reached, text in texts if is_reached}
    return [text for _, text in texts if text not in said and len(text) >= _MIN_MESSAGE_CHARACTERS]


def _normalize(text: str) -> str:
    return _NOT_WORDS.sub(" ", text.lower()).strip()


def _related_words(kind: str) -> tuple[str, ...]:
    """Return the forms of the word for the purpose of a roll, such as climb, climbs and climbing."""
    word = to_words(kind)
    return (word,) if " " in word else verb_forms(word)
