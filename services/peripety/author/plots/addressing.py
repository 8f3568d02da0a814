"""Address: texts about their writer, or about one person, as texts about the player."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from peripety.author.plots.phrases import capitalize_sentences
from peripety.author.text_analysis.words import find_lemmas

if TYPE_CHECKING:
    from collections.abc import Mapping

FIRST_PERSON = {
    "es": re.compile(
        r"(?i)\b(?:soy|estoy|tengo|quiero|debo|puedo|mis?|me|nos|nuestr\w+|somos|tenemos|queremos|yo)\b"
    ),
    "de": re.compile(r"(?i)\b(?:ich|mich|mir|wir|uns|mein\w*|unser\w*)\b"),
}
"""Words of the first person."""
_ADDRESS = {
    "us to": "all of you to",
    "i'm": "you are",
    "im": "you are",
    "i am": "you are",
    "i was": "you were",
    "i've": "you have",
    "i'd": "you would",
    "i'll": "you will",
    "am i": "are you",
    "i": "you",
    "we're": "you are",
    "we've": "you have",
    "we'd": "you would",
    "we'll": "you will",
    "we": "you",
    "me": "you",
    "us": "you",
    "my": "your",
    "our": "your",
    "mine": "yours",
    "ours": "yours",
    "myself": "yourself",
    "ourselves": "yourselves",
}
_ADDRESS_WORD = re.compile(rf"\b({'|'.join(sorted(_ADDRESS, key=len, reverse=True))})\b", re.IGNORECASE)
_ARTICLE_BEFORE = re.compile(r"(?i)\b(?:an?|the|this|that|old|new|his|her|their|my|our)\s$")
_CAPITAL_WORD = re.compile(r"\b(?:US|I{2,}|IV)\b")
_LEVEL = r"(?:very |really |quite )?(?:hard|difficult|tough|easy|normal)(?:er)?"
_REQUEST = re.compile(
    r"(?i)(?:(?:please|let me|let us|write|make me|create|give me|idk|surprise me)\b"
    r"|i want an? (?:game|story|scenario)\b"
    rf"|(?:make it|it should be) {_LEVEL}(?:,? please)?\W*$|{_LEVEL}(?: mode)?(?:,? please)?\W*$)"
)
_REQUEST_LEAD = re.compile(
    r"(?i)^(?:(?:please|pls|plz) )?(?:(?:can|could) you )?(?:"
    r"(?:(?:write|make|create|tell|generate|give)(?: me| us)?|i(?: want|\u2019d like|'d like)(?: to play)?)"
    r" (?:an? )?(?:[\w-]+ ){0,2}?(?:story|game|scenario|adventure|tale)"
    r"|(?:(?:do|make|write)(?: me| us)? )?one|something|an? (?:story|game|scenario))"
    r" (?:where|in which|about|with)\s+"
    r"|^an? (?:[\w-]+ ){0,2}?(?:story|game|mystery|adventure|tale): "
    r"|^(?:por favor,? )?(?:escr\u00edbeme|escribe|hazme|haz|cr\u00e9ame|crea|quiero) una? "
    r"(?:historia|juego|aventura|cuento) (?:sobre|con|donde|en (?:el|la) que|de)\s+"
    r"|^(?:bitte )?(?:schreib\w*|mach\w*|erstell\w*|ich (?:will|m\u00f6chte))(?: mir)?(?: bitte)? eine?n? "
    r"(?:geschichte|spiel|abenteuer) (?:\u00fcber|mit|von|\u00fcber)\s+"
    r"|^\u8bf7?(?:\u5e2e\u6211|\u7ed9\u6211)(?:\u5199\u4e00?[\u4e2a\u6bb5]|\u8bb2\u4e00?\u4e2a)?(?:\u5173\u4e8e)?"
)
"""Words of a request before the text of a story."""
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_ACTOR = re.compile(
    r"(?i)(play as )?(an? [^,.;]{3,48}?)(?:, led by (?:you|me|us),)? (?:(that|who) )?"
    r"(must|has to|needs to|wants to|tries to)\b"
)
_DUTY = re.compile(r"(?i)\b(?:must|has to|needs to|wants to|tries to|should)\s*$")
_YOU = re.compile(r"(?i)\byou\b")
_LED_BY = re.compile(r"(?i)\bled by (?:you|me|us)\b")
_THIRD = re.compile(
    r"(?s)(An? [^,.;]{3,60}?) (is|has|lives|runs|works|owns|keeps|leads|teaches|wants|finds|inherits) (.*)"
)
"""First clause of a text about one person."""
_THIRD_DUTY = re.compile(r"\b([Ss]he|[Hh]e) (?:must|has to|needs to|wants to|tries to|should)\b")
_THIRD_SUBJECT = re.compile(r"\b([Ss]he|[Hh]e) (\w+)")
_NAMED = (
    r"(?s)(?P<who>(?:[\w'.-]+ ){{0,3}}{}(?: (?:of|the) [\w' -]{{3,30}}?)?)(?:(?P<what>, [^,.;]{{3,60}}),)? "
    r"(?P<verb>must|has to|needs to|wants to|tries to|has|is)\b(?P<rest>.*)"
)
"""Start of a text about a person whose name is known: words around the name, and a duty."""
_ACTING = {"has to": "have to", "needs to": "need to", "wants to": "want to", "tries to": "try to"}
_THIRD_PERSON = re.compile(r"\b(?:his|her|its|their)\b(?= [a-z])")


def address_player(text: str) -> str:
    """Return an English text about its writer as one about "you", without requests for a text or a game."""

    def turn(found: re.Match[str]) -> str:
        is_noun = found[0].casefold() == "mine" and _ARTICLE_BEFORE.search(found.string[: found.start()])
        return found[0] if is_noun or _CAPITAL_WORD.fullmatch(found[0]) else _ADDRESS[found[0].casefold()]

    plain = " ".join(address_actor(text).replace("\u2019", "'").split())
    kept = [one for one in _SENTENCE_END.split(plain) if one and not _REQUEST.match(one)]
    turned = capitalize_sentences(_ADDRESS_WORD.sub(turn, " ".join(kept))).replace("'", "\u2019")
    return turned if not turned or turned.endswith((".", "!", "?")) else f"{turned}."


_SMALL_TALK = re.compile(
    r"(?i)^\s*(?:(?:hi|hello|hey|hiya)(?:\s+(?:there|all|everyone|game))?|dear game|ok(?:ay)?(?:\s+so)?)"
    r"\s*[!,.]+\s*"
    r"(?:so\s+)?"
    r"|\s+(?:lol|lmao|rofl|haha+|hehe+|xd)\b(?=\s*[.!?,;]|\s*$)"
    r"|(?<=[.!?])\s+(?:many\s+)?(?:thanks?|thx|cheers)(?:\s+yo+u+)?"
    r"(?:\s+(?:in advance|so much|very much))?\s*[.!]*\s*$"
)
"""Words of a chat without information about the game: a greeting, laughter, thanks at the end."""


def address_actor(text: str) -> str:
    """Return a text without the words of a request, and without the small talk of a chat.

    An English text whose first subject is the player, such as "A clerk has to ...", is about "you".
    """
    told = _REQUEST_LEAD.sub("", _SMALL_TALK.sub("", text) or text, count=1)
    found = _ACTOR.match(told.lstrip())
    if found is None:
        return _address_third(told)
    _, actor, link, verb = found.groups()
    act = verb if link else _ACTING.get(verb, verb)
    start = f"You are {actor[0].lower()}{actor[1:]}{f' {link}' if link else ', and you'} {act}"
    first, *rest = _SENTENCE_END.split(told.lstrip()[found.end() :], maxsplit=1)
    return " ".join([start + turn_third_person(first), *rest])


def _address_third(text: str) -> str:
    """Return an English text about one person, "A clerk has ... She must ...", as one about "you"."""
    found, duty = _THIRD.match(text.lstrip()), _THIRD_DUTY.search(text)
    if found is None or duty is None or _YOU.search(text) or _ADDRESS_WORD.search(text):
        return text
    verb = found[2]
    act = {"is": "are", "has": "have"}.get(verb) or find_lemmas(verb, "en")[-1]
    told = f"You are {found[1][0].lower()}{found[1][1:]}. You {act} {found[3]}"
    return _address_subject(told, is_woman=duty[1].casefold() == "she")


def _address_subject(told: str, *, is_woman: bool) -> str:
    """Return a text with the player for "she" and "her", or for "he" and "his"."""
    told = _THIRD_SUBJECT.sub(lambda one: _turn_subject(one, is_woman=is_woman), told)
    told = re.sub(
        r"\b[Hh]er\b(?=\s+(?:to|at|in|on|from|with|and|by)\b|[.,;!?])" if is_woman else r"\bhim\b",
        "you",
        told,
    )
    return re.sub(r"\bher\b(?= [a-z])" if is_woman else r"\bhis\b(?= [a-z])", "your", told)


def address_named(text: str, name: str) -> str:
    """Return an English text about a person with a name, "Alpha must ...", as one about "you".

    Args:
        text: the text.
        name: the name of the player; the text is unchanged if it does not begin with a duty of that person.
    """
    found = re.match(_NAMED.format(re.escape(name)), text.lstrip())
    if found is None or _YOU.search(text) or _ADDRESS_WORD.search(text):
        return text
    verb = found["verb"]
    act = {"is": "are", "has": "have"}.get(verb) or _ACTING.get(verb, verb)
    is_noun = verb == "is" and not found["what"] and found["rest"].startswith((" a ", " an "))
    who = re.sub(r" the (?=[a-z])", ", the ", found["who"], count=1)
    told = f"You are {who}{found['what'] or ''}. You {act}{found['rest']}"
    if is_noun:
        told = f"You are {who},{found['rest']}"
    subject = _THIRD_SUBJECT.search(told)
    return told if subject is None else _address_subject(told, is_woman=subject[1].casefold() == "she")


def _turn_subject(found: re.Match[str], *, is_woman: bool) -> str:
    """Return a subject in the third person and its verb in the second; unchanged for another person."""
    if (found[1].casefold() == "she") != is_woman:
        return found[0]
    verb = {"is": "are", "has": "have", "was": "were", "does": "do"}.get(found[2])
    lemma = find_lemmas(found[2], "en")[-1] if found[2].endswith("s") else found[2]
    return f"{'You' if found[1][0].isupper() else 'you'} {verb or lemma}"


def turn_third_person(text: str) -> str:
    """Return a text about the player in the third person with "your" for the first possessive."""
    first = _THIRD_PERSON.search(text)
    return re.sub(rf"\b{first[0]}\b(?= [a-z])", "your", text) if first else text


def address_words(text: str) -> str:
    """Return words of an English text about its writer as words about "you", with a small first letter."""
    turned = address_player(text).removesuffix(".")
    return turned[:1].lower() + turned[1:]


def address_text(text: str, common: Mapping[str, Any]) -> str:
    """Return a text of the user as one about the player; in quotation marks if its verbs cannot be turned."""
    language = common["language"]
    if language == "en":
        return address_player(text)
    if language in FIRST_PERSON:
        if text and FIRST_PERSON[language].search(text):
            return str(common["own_words"].format(text))
        return (
            capitalize_sentences(text)
            if not text or text.endswith((".", "!", "?"))
            else f"{capitalize_sentences(text)}."
        )
    return replace_words(text, common)


def replace_words(text: str, common: Mapping[str, Any]) -> str:
    """Return a text with the words about the writer replaced by those about the player."""
    edge = r"\b" if common["has_articles"] else ""
    for own, addressed in common["address"].items():
        text = re.sub(rf"{edge}{own}{edge}", addressed, text)
    return text


def is_of_third_person(text: str, goal: str) -> bool:
    """Return True if the player is a third person in the sentence of an English goal: "a group must ..."."""
    before, found, _ = text.partition(goal)
    subject = _LED_BY.sub("", _SENTENCE_END.split(before)[-1])
    has_duty = _DUTY.search(subject) is not None
    return bool(found) and has_duty and not _ADDRESS_WORD.search(subject) and not _YOU.search(subject)
