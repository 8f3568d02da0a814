"""Noun phrases: words of the user in the forms that the lines of a plot need, in each language with plots."""

from __future__ import annotations

import re
from dataclasses import dataclass

from peripety.author.text_analysis import noun_forms

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
    """

    bare: str
    is_plural: bool = False
    is_mass: bool = False
    is_name: bool = False
    language: str = "en"

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
        bare = self.bare
        if self.is_plural:
            bare += "n" if form == "dat" and not bare.endswith(("n", "s")) else ""
        elif form and self._gender == "m" and _DE_WEAK.search(bare):
            bare += "n" if bare.endswith(("e", "r")) else "en"
        return f"{_DE_ARTICLES[form]['p' if self.is_plural else self._gender]} {bare}"

    @property
    def _gender(self) -> str:
        words = self.bare.split()
        head = words[-1] if self.language == "de" else words[0]
        if self.is_plural and self.language == "es":
            head = noun_forms.find_singular(head, self.language)
        return noun_forms.find_gender(head, self.language)


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
        return " ".join(noun_forms.find_plural(word, language) for word in (*before, last))
    if head.casefold() not in {last.casefold(), phrase.casefold()}:
        return phrase
    made = pluralize(last) if language == "en" else noun_forms.find_plural(last, language)
    return " ".join([*before, made])


def parse_definite(text: str, language: str = "en") -> NounPhrase:
    """Return the phrase of a definite form, as a filled line contains it."""
    words = text.split()
    article, bare = words[:1], " ".join(words[1:])
    first = article[0].lower() if article else ""
    if language == "es" and first in _ES_ARTICLES.values() and bare:
        return NounPhrase(bare, is_plural=first in ("los", "las"), language=language)
    if language == "de" and first in ("der", "die", "das") and bare:
        many = first == "die" and (
            noun_forms.is_plural(words[-1], language) or noun_forms.find_gender(words[-1], language) != "f"
        )
        return NounPhrase(bare, is_plural=many, language=language)
    if first != "the" or language != "en":
        return NounPhrase(text, is_name=True, language=language)
    # The head is before a preposition: "sacks of grain".
    head = re.split(r" (?:of|for|in|on|at|with|from|to|that|who) ", bare)[0].split()[-1:]
    return NounPhrase(bare, is_plural=is_plural_noun("".join(head)))
