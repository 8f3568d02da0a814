"""Misconduct of a narrator that contradicts no fact: measured by the narrator benchmark, never withheld.

A narrator must not decide the player's words and deeds, reveal thoughts of others, change the tense of the
story, or use words of the machinery. The phrases of such prose also occur in good prose, so a turn is not
refused for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.session.narration.claims.english import (
    SPOKEN,
    Phrases,
    alternatives,
    irregular_pasts,
    is_question,
    is_unreal,
    is_unsure,
    remove_speech,
    split_sentences,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping


MACHINERY, THOUGHTS, PLAYING_ON, TENSE = "machinery", "thoughts", "playing_on", "tense"


def find_misconduct(spec: Mapping[str, Any], viewer: str | None, prose: str) -> tuple[str, ...]:
    """Return the kinds of misconduct in an English narration.

    Args:
        spec: the scenario.
        viewer: the entity of the point of view; None for the only playable entity, if there is one.
        prose: the narration of a turn without words of the player, which may decide the player's deeds.
    """
    entities = spec.get("entities") or ()
    playable = [entity["id"] for entity in entities if entity.get("playable")]
    you = viewer or (playable[0] if len(playable) == 1 else None)
    others = [str(entity.get("name") or entity["id"]) for entity in entities if entity["id"] != you]
    names = alternatives([*others, *(name.split()[0] for name in others)])
    phrases = Phrases(
        "conduct", {"spoken": SPOKEN, "who": rf"(?:{names})\b", "whose": rf"(?:{names})['\u2019]s"}
    )
    phrases.add_slots(names=names, irregular=alternatives(irregular_pasts()))
    sentences = [remove_speech(sentence) for sentence in split_sentences(prose)]
    found = list(_find_by_phrase(phrases, sentences))
    premise = spec.get("premise")
    tense = (premise.get("tense") if isinstance(premise, dict) else None) or "present"
    past = sum(_is_past(phrases, sentence) for sentence in sentences)
    has_other_tense = past == 0 if tense == "past" else past > len(sentences) / 2
    if sentences and has_other_tense:
        found.append(TENSE)
    return tuple(dict.fromkeys(found))


def _find_by_phrase(phrases: Phrases, sentences: Collection[str]) -> Iterator[str]:
    for sentence in sentences:
        if phrases.search("machinery", sentence):
            yield MACHINERY
        if is_question(sentence) or is_unreal(sentence) or is_unsure(sentence):
            continue
        if phrases.search("inner", sentence):
            yield THOUGHTS
        if phrases.search("plays", sentence):
            yield PLAYING_ON


def _is_past(phrases: Phrases, sentence: str) -> bool:
    is_real = not (is_question(sentence) or is_unreal(sentence) or is_unsure(sentence))
    return is_real and bool(phrases.search("past", sentence)) and not phrases.search("present", sentence)
