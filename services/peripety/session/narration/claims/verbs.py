"""Words of English: verbs with their forms and senses, and the words of the grammar by kind."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from peripety.session.narration.claims.english import load_toml, verb_forms

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


BASE, THIRD, PAST, PARTICIPLE, GERUND = "base", "third", "past", "participle", "gerund"


@cache
def words(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


@cache
def words_of(section: str, name: str) -> frozenset[str]:
    """Return a class of words of `vocabulary.toml`."""
    return words(load_toml("vocabulary.toml")[section][name])


@dataclass(frozen=True, slots=True)
class VerbReading:
    """A form of a verb.

    Attributes:
        lemma: the base of the verb.
        form: `base`, `third`, `past`, `participle` or `gerund`.
        senses: the classes of its most frequent senses.
        is_rare: True if the word is more often a noun or an adjective.
    """

    lemma: str
    form: str
    senses: frozenset[str]
    is_rare: bool


@cache
def verb_table() -> Mapping[str, Sequence[VerbReading]]:
    """Return the readings of each form of each verb."""
    text = resources.files(__package__).joinpath("verbs.txt").read_text(encoding="utf-8")
    table: dict[str, list[VerbReading]] = {}
    for line in text.splitlines():
        if line[0] == "#":
            continue
        lemma, classes, often, irregular = line.split()
        senses, is_rare = frozenset(classes.split(",")), often != "-"
        for word, form in sorted(_forms(lemma, [] if irregular == "-" else irregular.split(","))):
            table.setdefault(word, []).append(VerbReading(lemma, form, senses, is_rare))
    return table


def _forms(lemma: str, irregular: Sequence[str]) -> set[tuple[str, str]]:
    """Return the forms of a verb with their names.

    A regular form beside an irregular one does no harm: `leaned` and `leant` are both in use.
    """
    base, third, past, participle, gerund = verb_forms(lemma)
    forms = {(base, BASE), (third, THIRD), (past, PAST), (participle, PARTICIPLE), (gerund, GERUND)}
    forms |= {(one, GERUND) for one in irregular if one.endswith("ing")}
    pasts = [one for one in irregular if not one.endswith("ing")]
    for one in pasts:
        is_participle_only = len(pasts) > 1 and one.endswith("n")
        forms |= {(one, PARTICIPLE)} if is_participle_only else {(one, PAST), (one, PARTICIPLE)}
    if lemma in words_of("verbs", "unchanging"):
        forms |= {(lemma, PAST), (lemma, PARTICIPLE)}
    return forms


_TAGS = {"adjective": "adj", "subject": "pron", "object": "pron"}
# A word of several kinds has the last one.
_KINDS = (
    *("adv", "adjective", "prep", "object", "subject", "det", "poss"),
    *("conj", "sub", "neg", "modal", "be", "have", "do"),
)


@cache
def function_tags() -> Mapping[str, str]:
    """Return the part of speech of each word of the grammar: articles, pronouns, prepositions and the like."""
    section = load_toml("vocabulary.toml")["function"]
    return {word: _TAGS.get(kind, kind) for kind in _KINDS for word in section[kind].split()}


def is_function_word(word: str) -> bool:
    """Return True if a word belongs to the grammar."""
    return word in function_tags()
