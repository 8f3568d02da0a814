"""Senses of English words: the classes of WordNet that a word can have, the most frequent first."""

from __future__ import annotations

import lzma
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

TABLE = "senses.txt.xz"
"""File of the packed table: one line for each word, with one letter for each class."""

CLASSES = (
    "noun.Tops noun.act noun.animal noun.artifact noun.attribute noun.body noun.cognition noun.communication "
    "noun.event noun.feeling noun.food noun.group noun.location noun.motive noun.object noun.person "
    "noun.phenomenon noun.plant noun.possession noun.process noun.quantity noun.relation noun.shape noun.state "
    "noun.substance noun.time noun.group.people noun.artifact.place noun.artifact.vehicle "
    "noun.phenomenon.weather noun.event.harm noun.state.harm noun.act.harm noun.possession.money "
    "noun.quantity.money noun.time.unit verb.body verb.change verb.cognition verb.communication "
    "verb.competition verb.consumption verb.contact verb.creation verb.emotion verb.motion verb.perception "
    "verb.possession verb.social verb.stative verb.weather adjective adverb"
).split()
"""All classes: kind, lexicographer class, and for some nouns a narrower class."""

LETTERS = {name: chr(ord("A") + number) for number, name in enumerate(CLASSES)}
"""Letter of each class in the table."""

_NAMES = {letter: name for name, letter in LETTERS.items()}


@cache
def _load_table() -> Mapping[str, str]:
    packed = resources.files(__package__).joinpath(TABLE).read_bytes()
    return dict(line.split("\t") for line in lzma.decompress(packed).decode().split("\n"))


@cache
def find_classes(word: str) -> tuple[str, ...]:
    """Return the classes of a lemma, the most frequent first; none for an unknown word.

    Names of places have a capital in the table; other words do not.
    """
    return tuple(_NAMES[letter] for letter in _load_table().get(word, ""))
