"""Misconduct of a narrator that contradicts no fact: it is counted, and listed in the next prompt.

A narrator must not decide the player's words and deeds, reveal thoughts of others, change the tense of the
story, give the player things that the scenario does not have, or use words of the machinery. Most words of
such prose also occur in good prose, so a turn is refused only for names and signs of the program.

The secret filter finds the words of a secret in their order. A retold secret has the same names and nouns,
and the same lemmas of verbs. So a sentence of the prose that shares half of the content words of a
sentence of the secret, and four of them at least, is withheld, unless one text that the audience knows has
all of these words. A guess in fewer words is not found, and neither is one in synonyms.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from peripety.session.narration.claims.english import (
    BASE,
    GERUND,
    PARTICIPLE,
    SPOKEN,
    NameTable,
    Phrases,
    alternatives,
    is_function_word,
    is_question,
    is_unsure,
    number_forms,
    remove_speech,
    split_sentences,
    verb_table,
    words,
    words_of,
)
from peripety.session.narration.claims.grammar import read_sentence

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from peripety.session.narration.claims.clauses import Group, ProseClause, Sentence


MACHINERY, THOUGHTS, PLAYING_ON, TENSE, INVENTED = "machinery", "thoughts", "playing_on", "tense", "invented"
_MIN_REPEATED = 12
_SCENERY = words("it that there this")
_MEMORY = words("once then longer before ago when never last first who all night")
_WORDS = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True, slots=True)
class Misdeed:
    """A sentence that looks like misconduct.

    Attributes:
        kind: `machinery`, `thoughts`, `playing_on`, `tense` or `invented`.
        quotation: the sentence.
    """

    kind: str
    quotation: str


def find_misconduct(spec: Mapping[str, Any], viewer: str | None, prose: str) -> tuple[str, ...]:
    """Return the kinds of misconduct in an English narration.

    Args:
        spec: the scenario.
        viewer: the entity of the point of view; None for the only playable entity, if there is one.
        prose: the narration of a turn without words of the player, which may decide the player's deeds.
    """
    return tuple(dict.fromkeys(one.kind for one in find_misdeeds(spec, viewer, prose)))


def find_misdeeds(
    spec: Mapping[str, Any], viewer: str | None, prose: str, chosen: Collection[str] = ()
) -> list[Misdeed]:
    """Return the sentences of an English narration that look like misconduct.

    Two kinds of sentences are left out: those that the scenario contains, and deeds of the player with the
    verb of an action that the player chose.

    Args:
        spec: the scenario.
        viewer: the entity of the point of view; None for the only playable entity, if there is one.
        prose: the narration.
        chosen: names of the actions of the turn.
    """
    entities = spec.get("entities") or ()
    playable = [entity["id"] for entity in entities if entity.get("playable")]
    you = viewer or (playable[0] if len(playable) == 1 else "you")
    others = [str(entity.get("name") or entity["id"]) for entity in entities if entity["id"] != you]
    names = alternatives([*others, *(name.split()[0] for name in others)])
    phrases = Phrases(
        "conduct", {"spoken": SPOKEN, "who": rf"(?:{names})\b", "whose": rf"(?:{names})['\u2019]s"}
    )
    table = NameTable()
    for entity in entities:
        name = str(entity.get("name") or entity["id"])
        table.add("entity", entity["id"], [name, name.split(maxsplit=1)[0]])
    reader = _MisdeedReader(spec, you, phrases, chosen)
    own = [text for text in split_sentences(prose) if not contains_text(spec, text)]
    parsed = []
    for text in own:
        told = remove_speech(text)
        sentence = read_sentence(told, table, you)
        parsed += [] if is_question(told) else [sentence]
        reader.read(text.strip(), told, sentence)
    reader.read_tense(parsed)
    return reader.found


def has_machinery(sentence: str) -> bool:
    """Return True if a sentence has names or signs of the program, which no story has."""
    return Phrases("conduct").search("signs", sentence) is not None


def contains_text(spec: Mapping[str, Any], sentence: str) -> bool:
    """Return True if a sentence is part of a text of a scenario, so that the narrator only repeats it."""
    told = " ".join(sentence.split()).lower()
    return len(told) >= _MIN_REPEATED and any(
        told in " ".join(text.split()).lower() for text in _texts_of(spec) if len(text) >= len(told)
    )


class _MisdeedReader:
    """Reader of the misdeeds of one narration."""

    def __init__(self, spec: Mapping[str, Any], you: str, phrases: Phrases, chosen: Collection[str]) -> None:
        self._spec = spec
        self._you = you
        self._phrases = phrases
        self._chosen = {word for name in chosen for word in _WORDS.findall(name.lower())}
        self._known = {word for text in _texts_of(spec) for word in _WORDS.findall(text.lower())}
        self.found: list[Misdeed] = []

    def read(self, text: str, told: str, sentence: Sentence) -> None:
        """Read a sentence; its speech is left out of `told`."""
        if self._phrases.search("machinery", told) or self._phrases.search("signs", told):
            self.found.append(Misdeed(MACHINERY, text))
        if is_question(told) or sentence.is_unreal:
            return
        is_said = self._phrases.search("said_so", told) is not None
        # The narrator quotes the player, or makes time pass.
        is_quoted = self._phrases.search("speaks", told) or self._phrases.search("plays", told)
        if is_quoted or any(self._plays(clause, sentence) for clause in sentence.clauses):
            self.found.append(Misdeed(PLAYING_ON, text))
        if not is_said and (
            (self._phrases.search("inner", told) and not is_unsure(told))
            or any(self._thinks(clause, sentence) for clause in sentence.clauses)
        ):
            self.found.append(Misdeed(THOUGHTS, text))
        if any(self._invents(clause, sentence) for clause in sentence.clauses):
            self.found.append(Misdeed(INVENTED, text))

    def read_tense(self, sentences: Sequence[Sentence]) -> None:
        """Read the tense of the whole narration."""
        premise = self._spec.get("premise")
        is_past = isinstance(premise, dict) and premise.get("tense") == "past"
        told = [
            (clause, one)
            for one in sentences
            if not one.is_unreal
            for clause in one.clauses
            if _is_main(clause) and not clause.has_any_tense
        ]
        if not told or any(clause.is_past is is_past for clause, _ in told):
            return
        clause, sentence = told[0]
        # A single clause may be a memory: `Delta never came back`, `it was a long way`.
        is_memory = len(told) == 1 and (
            bool(clause.subjects())
            or (clause.base == "be" and clause.subject is not None and clause.subject.word in _SCENERY)
            or bool(_MEMORY & {token.word for token in sentence.tokens})
        )
        if not is_memory:
            self.found.append(Misdeed(TENSE, sentence.text.strip()))

    def _plays(self, clause: ProseClause, sentence: Sentence) -> bool:
        """Return True if the player commits to something, or has a strong feeling."""
        if (
            self._you not in clause.subjects()
            or not clause.is_asserted
            or clause.is_negative
            or clause.is_passive
            or clause.base in self._chosen
        ):
            return False
        groups = [*clause.objects, *(group for _, group in clause.phrases)]
        named = {one.word for one in groups}
        if clause.base in words_of("conduct", "feels") and named & words_of("conduct", "feelings"):
            return True
        if clause.base == "be" and set(clause.rest_words[:2]) & words_of("conduct", "moods"):
            return True
        if clause.base in words("give make take swear") and named & words_of("conduct", "pledges"):
            return True
        if clause.base not in words_of("conduct", "commits"):
            return False
        people = {key for one in groups for key in one.keys("entity")} - {self._you}
        follows = any(
            one.governor is clause and one.is_infinitive and not one.is_passive for one in sentence.clauses
        )
        deals = named & words_of("conduct", "deals")
        return bool(people) or follows or bool(deals) or not clause.rest

    def _thinks(self, clause: ProseClause, sentence: Sentence) -> bool:
        """Return True if a clause describes the thoughts of another person."""
        people = [key for key in clause.subjects() if key != self._you]
        told = {token.word for token in sentence.tokens}
        if not clause.is_asserted or clause.subordinator or clause.modal or "aloud" in told:
            return False
        inside = [*clause.objects, *(group for _, group in clause.phrases)]
        is_inside = any(
            one.word in words("heart mind soul thoughts") and set(one.owned_by()) - {self._you}
            for one in inside
        )
        if not people:
            return is_inside and clause.subject is not None and clause.subject.owned_by() == []
        hides = (
            bool(told & words("secretly inwardly secret silently hides hide"))
            or "to herself" in sentence.text
        )
        if clause.is_negative and clause.base != "trust":
            return False
        if clause.base in words_of("conduct", "broods") and clause.objects:
            return True
        if clause.base == "feel":
            parts = [part for one in inside for part in (one, one.of) if part is not None]
            return any(part.word in words_of("conduct", "feelings") for part in parts)
        if clause.base in words_of("conduct", "thinks"):
            content = any(
                one is not clause and one.governor is clause and one.subordinator != "as"
                for one in sentence.clauses
            )
            about = any(word in {"of", "about"} for word, _ in clause.phrases)
            of_you = (
                any(
                    self._you in one.keys("entity") or one.owned_by() == [self._you]
                    for one in clause.objects[:1]
                )
                and len(clause.objects) == 1
            )
            aims = clause.base in words("decide hope plan long") and "to" in clause.rest_words[:2]
            return content or about or hides or of_you or aims
        return hides and clause.base == "be"

    def _invents(self, clause: ProseClause, sentence: Sentence) -> bool:
        """Return True if the player gets a thing that the scenario does not name."""
        if not clause.is_asserted or clause.is_negative or clause.is_past:
            return False
        if {token.word for token in sentence.tokens} & words("leave drop fall again back"):
            return False
        you, told = self._you, {*clause.rest_words, *clause.adverbs}
        is_yours = you in clause.subjects()
        takes = is_yours and (
            clause.base in words("find discover receive pocket grab acquire take own")
            or clause.verb == "pick-up"
            or (clause.base in words("pick dig") and "up" in told)
            or (clause.base == "come" and "across" in told)
            or (clause.base == "have" and "now" in told | {sentence.tokens[0].word})
            or (clause.is_passive and clause.base in words("give hand offer"))
        )
        if is_yours and clause.base == "help" and "yourself" in told:
            return any(word == "to" and _is_new(one, self._known) for word, one in clause.phrases)
        gives = clause.is_a("hand") and any(you in one.keys("entity") for one in clause.objects)
        gives |= (clause.is_a("hand") or clause.base == "press") and any(
            word in {"to", "into"} and you in [*one.keys("entity"), *one.owned_by()]
            for word, one in clause.phrases
        )
        groups = [*clause.objects, *(one for word, one in clause.phrases if word == "across")]
        return (takes or gives) and any(_is_new(one, self._known) for one in groups)


def _is_main(clause: ProseClause) -> bool:
    """Return True if a clause has a finite verb in the tense of the story."""
    if (
        not clause.is_asserted
        or clause.modal
        or clause.is_infinitive
        or clause.subordinator
        or not clause.verb
    ):
        return False
    is_finite = clause.form not in {GERUND, PARTICIPLE, BASE} or clause.is_past
    return is_finite or clause.form == BASE or clause.is_passive or clause.is_perfect


def _is_new(group: Group, known: Collection[str]) -> bool:
    is_indefinite = group.tokens[0].word in {"a", "an"}
    word = group.word
    if group.of is not None and word in words("cup glass mug bowl plate"):
        # A drink is gone at once.
        return False
    return is_indefinite and not {word, word.removesuffix("s")} & {*known, *words_of("words", "light")}


def _texts_of(value: Any) -> Iterator[str]:
    """Yield all texts and keys of a scenario."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from _texts_of(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts_of(inner)
    elif isinstance(value, str):
        yield value


# --- secrets in other words ---

_LEAST_SHARED = 4
_CACHED_TEXTS = 4_096
_MIN_CHARACTERS = 3


class RetoldSecrets:
    """Checker of sentences that retell a secret.

    Args:
        secrets: texts that the audience may not know.
        known: texts that it knows.
    """

    def __init__(self, secrets: Sequence[str], known: Iterable[str]) -> None:
        parts = {content_words(one) for text in secrets for one in split_sentences(text)}
        self._secrets = [part for part in parts if len(part) >= _LEAST_SHARED]
        self.words = frozenset(
            word for text in secrets for word in _WORDS.findall(text.lower()) if not is_function_word(word)
        )
        """The words with which a retold secret may begin."""
        self._known = {content_words(text) for text in known} if self._secrets else set()

    def is_told(self, sentence: str) -> bool:
        """Return True if a sentence, with its speech, retells a secret."""
        told = content_words(sentence) if self._secrets else frozenset[str]()
        for secret in self._secrets:
            shared = told & secret
            is_most = len(shared) >= max(_LEAST_SHARED, -(-len(secret) // 2))
            if is_most and not any(shared <= known for known in self._known):
                return True
        return False


@lru_cache(maxsize=_CACHED_TEXTS)
def content_words(text: str) -> frozenset[str]:
    """Return the lemmas of the words of an English text, without function words and light verbs."""
    found = {word for word in _WORDS.findall(text.lower()) if not is_function_word(word)}
    return frozenset(_lemma(word) for word in found if len(word) >= _MIN_CHARACTERS) - words_of(
        "sets", "light"
    )


def _lemma(word: str) -> str:
    readings = verb_table().get(word)
    return readings[0].lemma if readings else number_forms(word)[:2][-1]
