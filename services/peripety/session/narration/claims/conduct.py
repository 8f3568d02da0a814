"""Misconduct of a narrator that contradicts no fact: the narrator benchmark counts it.

A narrator must not decide the player's words and deeds, reveal thoughts of others, change the tense of the
story, give the player things that the scenario does not have, or use words of the machinery. Most words of
such prose also occur in good prose, so a turn is refused only for names and signs of the program.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from peripety.session.narration.claims.english import (
    BASE,
    GERUND,
    PARTICIPLE,
    SPOKEN,
    NameTable,
    Phrases,
    alternatives,
    is_question,
    is_unreal,
    is_unsure,
    remove_speech,
    split_sentences,
    words_of,
)
from peripety.session.narration.claims.grammar import read_sentence

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from peripety.session.narration.claims.clauses import Group, ProseClause, Sentence


MACHINERY, THOUGHTS, PLAYING_ON, TENSE, INVENTED = "machinery", "thoughts", "playing_on", "tense", "invented"
_WORDS = re.compile(r"[^\W\d_]+")


def find_misconduct(spec: Mapping[str, Any], viewer: str | None, prose: str) -> tuple[str, ...]:
    """Return the kinds of misconduct in an English narration.

    Args:
        spec: the scenario.
        viewer: the entity of the point of view; None for the only playable entity, if there is one.
        prose: the narration of a turn without words of the player, which may decide the player's deeds.
    """
    entities = spec.get("entities") or ()
    playable = [entity["id"] for entity in entities if entity.get("playable")]
    you = viewer or (playable[0] if len(playable) == 1 else "you")
    others = [str(entity.get("name") or entity["id"]) for entity in entities if entity["id"] != you]
    names = alternatives([*others, *(name.split()[0] for name in others)])
    phrases = Phrases(
        "conduct", {"spoken": SPOKEN, "who": rf"(?:{names})\b", "whose": rf"(?:{names})['\u2019]s"}
    )
    sentences = [remove_speech(sentence) for sentence in split_sentences(prose)]
    table = NameTable()
    for entity in entities:
        name = str(entity.get("name") or entity["id"])
        table.add("entity", entity["id"], [name, name.split(maxsplit=1)[0]])
    parsed = [read_sentence(sentence, table, you) for sentence in sentences if not is_question(sentence)]
    found = [*_find_by_phrase(phrases, sentences), *_find_by_clause(spec, parsed, you)]
    return tuple(dict.fromkeys(found))


def has_machinery(sentence: str) -> bool:
    """Return True if a sentence has names or signs of the program, which no story has."""
    return Phrases("conduct").search("signs", sentence) is not None


def _find_by_phrase(phrases: Phrases, sentences: Collection[str]) -> Iterator[str]:
    for sentence in sentences:
        if phrases.search("machinery", sentence) or phrases.search("signs", sentence):
            yield MACHINERY
        if is_question(sentence) or is_unreal(sentence) or is_unsure(sentence):
            continue
        if phrases.search("inner", sentence):
            yield THOUGHTS
        if phrases.search("plays", sentence):
            yield PLAYING_ON


def _find_by_clause(spec: Mapping[str, Any], parsed: Iterable[Sentence], you: str) -> Iterator[str]:
    premise = spec.get("premise")
    is_past = isinstance(premise, dict) and premise.get("tense") == "past"
    clauses = [clause for sentence in parsed if not sentence.is_unreal for clause in sentence.clauses]
    main = [clause for clause in clauses if _is_main(clause)]
    # One clause about a person may be a memory: `Delta never came back`.
    is_memory = len(main) == 1 and bool(main[0].subjects())
    if main and not is_memory and all(clause.is_past is not is_past for clause in main):
        yield TENSE
    known = {word for text in _texts_of(spec) for word in _WORDS.findall(text.lower())}
    if any(_invents(clause, you, known) for clause in clauses):
        yield INVENTED


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


def _invents(clause: ProseClause, you: str, known: Collection[str]) -> bool:
    """Return True if the player gets a thing with an indefinite article that the scenario does not name."""
    if not clause.is_asserted or clause.is_negative:
        return False
    takes = you in clause.subjects() and (clause.is_a("find") or clause.verb == "pick-up")
    gives = clause.is_a("hand") and any(you in one.keys("entity") for one in clause.objects)
    gives |= clause.is_a("hand") and any(
        word in {"to", "into"} and you in [*one.keys("entity"), *one.owned_by()]
        for word, one in clause.phrases
    )
    return (takes or gives) and any(_is_new(one, known) for one in clause.objects)


def _is_new(group: Group, known: Collection[str]) -> bool:
    is_indefinite = group.tokens[0].word in {"a", "an"}
    word = group.word
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
