"""Noun phrases: words of the user in the forms that the lines of a plot need, in each language with plots."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety.author.text_analysis import noun_forms

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peripety.author.text_analysis.phrases import Person, Phrase

LONGEST_PHRASE = 48
"""The most characters of a phrase of the user in a line."""
UNFIT = re.compile(r"[\d{}\[\]()<>\\/|_:;\"]")
"""Characters that a phrase of the user must not have."""

_VOWEL = re.compile(r"(?i)[aeio]|u(?!ni|s[aeiu]|ti)|h(?=our|onest|eir)")
_IRREGULAR = {
    "man": "men",
    "woman": "women",
    "child": "children",
    "person": "people",
    "foot": "feet",
    "tooth": "teeth",
    "mouse": "mice",
    "goose": "geese",
    "ox": "oxen",
    "life": "lives",
    "wife": "wives",
    "knife": "knives",
    "leaf": "leaves",
    "loaf": "loaves",
    "half": "halves",
    "shelf": "shelves",
    "thief": "thieves",
    "wolf": "wolves",
    "calf": "calves",
    "hoof": "hooves",
    "crisis": "crises",
    "sheep": "sheep",
    "fish": "fish",
    "deer": "deer",
    "series": "series",
    "hero": "heroes",
    "potato": "potatoes",
    "tomato": "tomatoes",
    "echo": "echoes",
}
_PLURALS = frozenset(_IRREGULAR.values()) | {"police", "cattle", "people"}
_SINGULAR_ENDINGS = ("ss", "us", "is", "news", "ics")


_ES_ARTICLES = {("m", False): "el", ("f", False): "la", ("m", True): "los", ("f", True): "las"}
_ES_CONTRACTIONS = {"de el ": "del ", "a el ": "al "}
_ES_STRESSED = re.compile(r"(?i)h?[a\u00e1](?:gua|rma|rea|la|lma|ula|mbre|cha|nsia|nimo)\b")
_DE_ARTICLES = {
    "": {"m": "der", "f": "die", "n": "das", "p": "die"},
    "acc": {"m": "den", "f": "die", "n": "das", "p": "die"},
    "dat": {"m": "dem", "f": "der", "n": "dem", "p": "den"},
}
_DE_WEAK = re.compile(r"(?:[^e]e|ent|ant|ist|oge|at|mensch|herr|nachbar|bauer)$", re.IGNORECASE)
_POSSESSIVES = ("your", "tu")
"""Words before a person of the player, where German and Chinese have other forms."""
_DE_TAIL = re.compile(r" (?:aus|unter|von) ")
_DE_ADJECTIVE = re.compile(r"[a-z\u00e4\u00f6\u00fc\u00df]+e")
_INDEFINITE = {"es": ("un", "una"), "de": ("ein", "eine")}


@dataclass(frozen=True, slots=True)
class NounPhrase:
    """Noun phrase in the forms that lines use.

    Attributes:
        bare: its words without an article, in its number.
        is_plural: True if verbs with it are in the plural.
        is_mass: True if it has no indefinite article.
        is_name: True if it has no article at all.
        language: its language; a language without articles has none of these forms.
        gender: the gender that the text shows, for a German noun that is in no table; may be empty.
    """

    bare: str
    is_plural: bool = False
    is_mass: bool = False
    is_name: bool = False
    language: str = "en"
    gender: str = ""

    @property
    def definite(self) -> str:
        """The phrase with the definite article."""
        return self.inflect("")

    @property
    def indefinite(self) -> str:
        """The phrase with the indefinite article, where it can have one."""
        if self.is_name or self.is_plural or self.is_mass:
            return self.bare
        if self.language == "en":
            return f"{'an' if _VOWEL.match(self.bare) else 'a'} {self.bare}"
        articles = _INDEFINITE.get(self.language)
        return f"{articles[self._gender == 'f']} {self.bare}" if articles else self.bare

    @property
    def owner(self) -> str:
        """The definite phrase as an owner."""
        ends = self.definite.endswith("s")
        return f"{self.definite}\u2019" if ends and self.is_plural else f"{self.definite}\u2019s"

    def inflect(self, form: str) -> str:
        """Return the definite phrase in a form: "" for the nominative, a case, or a Spanish preposition."""
        if self.language == "es":
            return self._inflect_spanish(form)
        if self.is_name or self.language not in ("en", "de"):
            return self.bare
        return self._inflect_german(form) if self.language == "de" else f"the {self.bare}"

    def _inflect_spanish(self, form: str) -> str:
        article = "" if self.is_name else f"{_ES_ARTICLES[self._gender or 'm', self.is_plural]} "
        if article == "la " and _ES_STRESSED.match(self.bare):
            article = "el "
        start = f"{form} {article}" if form else article
        return f"{_ES_CONTRACTIONS.get(start, start)}{self.bare}"

    def _inflect_german(self, form: str) -> str:
        bare = _decline_adjective(self.bare, form, self._gender)
        if _DE_TAIL.search(bare):
            return f"{_DE_ARTICLES[form][self._gender]} {bare}"
        if self.is_plural:
            bare += "n" if form == "dat" and not bare.endswith(("n", "s")) else ""
        elif form and self._gender == "m" and _DE_WEAK.search(bare):
            bare += "n" if bare.endswith(("e", "r")) else "en"
        return f"{_DE_ARTICLES[form]['p' if self.is_plural else self._gender]} {bare}"

    @property
    def _gender(self) -> str:
        words = self.bare.split()
        head = _DE_TAIL.split(self.bare)[0].split()[-1] if self.language == "de" else words[0]
        if self.is_plural and self.language == "es":
            head = noun_forms.find_singular(head, self.language)
        return noun_forms.find_gender(head, self.language, self.gender)


def _decline_adjective(bare: str, form: str, gender: str) -> str:
    """Return a German singular, with an adjective at its start in the form after an article."""
    first, _, rest = bare.partition(" ")
    is_changed = form == "dat" or (form == "acc" and gender == "m")
    return f"{first}n {rest}" if rest and is_changed and _DE_ADJECTIVE.fullmatch(first) else bare


def build_phrase(phrase: Phrase, language: str = "en") -> NounPhrase | None:
    """Return the noun phrase of a phrase of a reading; None if it does not fit into prose."""
    text = " ".join(phrase.text.split())
    if not text or len(text) > LONGEST_PHRASE or UNFIT.search(text):
        return None
    if phrase.is_plural and not phrase.is_proper and language != "zh":
        text = pluralize_in(text, phrase.head, language if language in ("es", "de") else "en")
    return NounPhrase(
        text,
        is_plural=phrase.is_plural,
        is_mass=phrase.is_mass,
        is_name=phrase.is_proper,
        language=language,
        gender=phrase.gender,
    )


def person_phrase(person: Person, language: str = "en") -> NounPhrase | None:
    """Return the noun phrase of a person: the name, else the role with whose person it is."""
    text = " ".join((person.name or f"{person.owner} {person.role}").split())
    if not text or len(text) > LONGEST_PHRASE or UNFIT.search(text):
        return None
    first = text[:1]
    is_name = bool(person.name) or text.startswith("your ") or (bool(person.owner) and first.isupper())
    return NounPhrase(text, is_name=is_name, language=language)


def default_phrase(table: Mapping[str, Any], language: str = "en") -> NounPhrase:
    """Return the phrase of default words."""
    return NounPhrase(
        table["bare"],
        is_plural=table.get("plural", False),
        is_mass=table.get("mass", False),
        is_name=table.get("name", False),
        language=language,
    )


def pluralize(word: str) -> str:
    """Return the plural of an English noun."""
    lowered = word.casefold()
    if lowered in _IRREGULAR:
        return word[:1] + _IRREGULAR[lowered][1:]
    if re.search(r"[^aeiou]y$", lowered):
        return f"{word[:-1]}ies"
    return f"{word}es" if re.search(r"(s|x|z|ch|sh)$", lowered) else f"{word}s"


def is_plural_noun(word: str) -> bool:
    """Return True if an English noun looks like a plural."""
    lowered = word.casefold()
    return lowered in _PLURALS or (lowered.endswith("s") and not lowered.endswith(_SINGULAR_ENDINGS))


def pluralize_in(phrase: str, head: str, language: str) -> str:
    """Return a phrase in the plural, with the adjectives after a Spanish noun; its head is singular."""
    *before, last = phrase.split()
    if language == "es":
        forms = (
            word if _is_plural_form(word, language) else noun_forms.find_plural(word, language)
            for word in (*before, last)
        )
        return " ".join(forms)
    if head.casefold() not in {last.casefold(), phrase.casefold()}:
        return phrase
    made = pluralize(last) if language == "en" else noun_forms.find_plural(last, language)
    return " ".join([*before, made])


def _is_plural_form(word: str, language: str) -> bool:
    return word.endswith("s") and noun_forms.find_singular(word, language) != word


def parse_definite(text: str, language: str = "en") -> NounPhrase:
    """Return the phrase of a definite form, as a filled line contains it."""
    words = text.split()
    article, bare = words[:1], " ".join(words[1:])
    first = article[0].lower() if article else ""
    if language == "es" and first in _ES_ARTICLES.values() and bare:
        return NounPhrase(bare, is_plural=first in ("los", "las"), language=language)
    if language == "de" and first in ("der", "die", "das") and bare:
        head = _DE_TAIL.split(bare)[0].split()[-1]
        shown = {"der": "m", "die": "f", "das": "n"}[first]
        many = first == "die" and (
            noun_forms.is_plural(head, language) or noun_forms.find_gender(head, language, shown) != "f"
        )
        return NounPhrase(bare, is_plural=many, language=language, gender="" if many else shown)
    if first in _POSSESSIVES and bare:
        many = language == "en" and is_plural_noun(bare.split(" of ")[0].split()[-1])
        return NounPhrase(f"{first} {bare}", is_plural=many, is_name=True, language=language)
    if first != "the" or language != "en":
        return NounPhrase(text, is_name=True, language=language)
    # The head is before a preposition: "sacks of grain".
    head = re.split(r" (?:of|for|in|on|at|with|from|to|that|who) ", bare)[0].split()[-1:]
    return NounPhrase(bare, is_plural=is_plural_noun("".join(head)))
