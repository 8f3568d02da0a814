"""English of narrations: sentences, clauses, quoted speech, numerals and verb forms.

Only plain statements in the present of the story are claims. Questions, quoted and reported speech,
conditions, wishes, plans, memories and comparisons are not, because they may be false in a true story.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


SPOKEN = "\u201c\u201d"
"""Replacement of quoted speech."""

_QUOTES = re.compile(
    r"\"[^\"]*(?:\"|$)|\u201c[^\u201d]*(?:\u201d|$)|\u00ab[^\u00bb]*(?:\u00bb|$)|(?<!\w)[\u2018'](?=\w)[^\u2019']*[\u2019'](?!\w)"
)
_OPENING = {'"': '"', "\u201c": "\u201d", "\u00ab": "\u00bb"}
_ENDS = ".!?\u2026\n"
_CLOSERS = "\"\u201d\u00bb\u2019')"
_CLAUSES = re.compile(
    r"\s*[;:\u2013\u2014]\s*|\s+-\s+|,?\s+(?:but|while|although|though|yet|then)\s+|,\s+(?:and|then|so)\s+(?:then\s+)?"
    r"|\s+and\s+then\s+",
    re.IGNORECASE,
)
_UNREAL = re.compile(
    r"\b(?:if|unless|whether|would|wish(?:es)?|imagin\w+|dream\w*|as if|as though|remember\w*|recall\w*|memor(?:y|ies)|"
    r"used to|once you|yesterday|tomorrow|last night|long ago|long before|years? ago|hours? ago|one day|ghost|portrait|picture|photo\w*|"
    r"in your (?:head|mind)|what if|suppose\w*|when \w+ one day|story of|legend|the words?|rumou?r\w*)\b|\w'd\b",
    re.IGNORECASE,
)
_UNSURE = re.compile(
    r"\b(?:could|might|may|will|shall|should|must|ought|perhaps|maybe|probably|hop(?:e|es|ing)|almost|nearly|soon|"
    r"seems?|seemed|appears? to|feels? (?:like|as)|about to|going to|had(?! to\b)|hardly|barely|once|\w+'ll)\b",
    re.IGNORECASE,
)
_REPORTED = re.compile(
    r"\b(?:claim|think|believe|swear|insist|report|fear|suspect|guess|doubt|wonder|mention|promise|offer|say|tell|argue|"
    r"order|want|need|ask|suggest|deny|talk|plan|warn|demand|beg|expect|pretend|mean)(?:s|es|ing|ed)?\b"
    r"|\b(?:said|told|thought|denies)\b",
    re.IGNORECASE,
)
_NEGATIVE = re.compile(
    r"\b(?:not|no|never|without|nothing|neither|nor|cannot|none|no one|nowhere)\b|n[\u2019']t\b",
    re.IGNORECASE,
)


class SentenceBuffer:
    """Splitter of streamed prose into sentences; a sentence never ends inside quoted speech."""

    def __init__(self) -> None:
        self._text = ""

    @property
    def rest(self) -> str:
        """The beginning of the sentence that is not complete."""
        return self._text

    def feed(self, text: str) -> Iterator[str]:
        """Add text; yield the sentences that are complete now, with the space behind them."""
        self._text += text
        while (end := _sentence_end(self._text)) is not None:
            sentence, self._text = self._text[:end], self._text[end:]
            yield sentence

    def finish(self) -> str:
        """Return the last sentence; empty if there is none."""
        sentence, self._text = self._text, ""
        return sentence


def _sentence_end(text: str) -> int | None:
    """Return the end of the first sentence, or None if more text could belong to it."""
    closing = ""
    for place, character in enumerate(text):
        if closing:
            closing = "" if character in {closing, "\n"} else closing
            continue
        if character in _OPENING:
            closing = _OPENING[character]
        elif character in _ENDS:
            end = place + 1
            while end < len(text) and text[end] in _ENDS + _CLOSERS:
                end += 1
            if end == len(text) and character != "\n":
                return None
            if character == "\n" or text[end].isspace():
                while end < len(text) and text[end].isspace():
                    end += 1
                return end
    return None


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text."""
    buffer = SentenceBuffer()
    return [*buffer.feed(text), *filter(None, [buffer.finish()])]


def remove_speech(sentence: str) -> str:
    """Replace quoted speech with empty quotes."""
    return _QUOTES.sub(SPOKEN, sentence)


def is_question(sentence: str) -> bool:
    """Return True if a sentence without its quoted speech is a question."""
    return sentence.rstrip(" \n\u2019')").endswith("?")


def is_unreal(sentence: str) -> bool:
    """Return True if a sentence tells of conditions, wishes, dreams or memories."""
    return _UNREAL.search(sentence) is not None


def is_unsure(clause: str) -> bool:
    """Return True if a clause tells of a possibility, of the future or of an earlier past."""
    return _UNSURE.search(clause) is not None


def is_negative(clause: str) -> bool:
    """Return True if a clause has a negation."""
    return _NEGATIVE.search(clause) is not None


def drop_reported(sentence: str) -> str:
    """Return a sentence up to its first verb that reports the words or thoughts of a person."""
    found = _REPORTED.search(sentence)
    return sentence if found is None else sentence[: found.end()]


def split_clauses(sentence: str) -> list[str]:
    """Return the main parts of a sentence."""
    return [clause for clause in (part.strip(" ,.!\u2026\n") for part in _CLAUSES.split(sentence)) if clause]


# --- numerals ---

_UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen "
    "nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_SMALL = {word: number for number, word in enumerate(_UNITS)}
_SMALL |= {word: 10 * number for number, word in enumerate(_TENS, start=2)}
_SMALL |= {"dozen": 12, "no": 0}
_WORD_NUMBER = "|".join(sorted((word for word in _SMALL if word != "no"), key=len, reverse=True))
NUMERAL = (
    r"(?<![\w.,])(?:-?\d+(?:,\d{3})*(?:\.\d+)?(?![\d.]*\d)|"
    rf"(?:a |one |two |three |four |five |six |seven |eight |nine )?hundred(?: and)?(?: (?:{_WORD_NUMBER})(?:[- ](?:{_WORD_NUMBER}))?)?|"
    rf"(?:half a |a )?dozen|(?:{_WORD_NUMBER})(?:-(?:{_WORD_NUMBER}))?)(?!\w)"
)
"""Pattern of a numeral."""


def parse_numeral(text: str) -> float:
    """Return the value of a text that matches `NUMERAL`."""
    text = text.lower().strip()
    if text[-1].isdigit():
        return float(text.replace(",", ""))
    if "dozen" in text:
        return 6.0 if text.startswith("half") else 12.0
    total = 0
    before, has_hundred, after = text.partition("hundred")
    if has_hundred:
        total = 100 * (_SMALL.get(before.strip(), 1) if before.strip() not in {"", "a"} else 1)
        before = after
    return float(total + sum(_SMALL.get(word, 0) for word in re.findall(r"[a-z]+", before)))


# --- verbs and nouns ---

_IRREGULAR = {
    "be": ("was", "been"), "begin": ("began", "begun"), "bend": ("bent", "bent"), "break": ("broke", "broken"),
    "bring": ("brought", "brought"), "build": ("built", "built"), "burn": ("burnt", "burnt"), "buy": ("bought", "bought"),
    "catch": ("caught", "caught"), "choose": ("chose", "chosen"), "come": ("came", "come"), "cut": ("cut", "cut"),
    "dig": ("dug", "dug"), "do": ("did", "done"), "draw": ("drew", "drawn"), "drink": ("drank", "drunk"), "drive": ("drove", "driven"),
    "eat": ("ate", "eaten"), "fall": ("fell", "fallen"), "feed": ("fed", "fed"), "feel": ("felt", "felt"), "fight": ("fought", "fought"),
    "find": ("found", "found"), "fly": ("flew", "flown"), "get": ("got", "got"), "give": ("gave", "given"), "go": ("went", "gone"),
    "grow": ("grew", "grown"), "hang": ("hung", "hung"), "have": ("had", "had"), "hear": ("heard", "heard"), "hide": ("hid", "hidden"),
    "hit": ("hit", "hit"), "hold": ("held", "held"), "keep": ("kept", "kept"), "kneel": ("knelt", "knelt"), "know": ("knew", "known"),
    "lay": ("laid", "laid"), "lead": ("led", "led"), "leave": ("left", "left"), "lend": ("lent", "lent"), "let": ("let", "let"),
    "light": ("lit", "lit"), "lose": ("lost", "lost"), "make": ("made", "made"), "meet": ("met", "met"), "pay": ("paid", "paid"),
    "put": ("put", "put"), "read": ("read", "read"), "ride": ("rode", "ridden"), "ring": ("rang", "rung"), "rise": ("rose", "risen"),
    "run": ("ran", "run"), "say": ("said", "said"), "see": ("saw", "seen"), "seek": ("sought", "sought"), "sell": ("sold", "sold"),
    "send": ("sent", "sent"), "set": ("set", "set"), "shake": ("shook", "shaken"), "show": ("showed", "shown"), "shut": ("shut", "shut"),
    "sing": ("sang", "sung"), "sink": ("sank", "sunk"), "sit": ("sat", "sat"), "sleep": ("slept", "slept"), "speak": ("spoke", "spoken"),
    "spend": ("spent", "spent"), "stand": ("stood", "stood"), "steal": ("stole", "stolen"), "swear": ("swore", "sworn"),
    "take": ("took", "taken"), "teach": ("taught", "taught"), "tell": ("told", "told"), "think": ("thought", "thought"),
    "throw": ("threw", "thrown"), "wake": ("woke", "woken"), "wear": ("wore", "worn"), "win": ("won", "won"), "write": ("wrote", "written"),
}  # fmt: skip


@lru_cache(maxsize=4096)
def verb_forms(verb: str) -> tuple[str, str, str, str, str]:
    """Return the base, the form with s, the past, the participle and the form with ing of a verb."""
    ends_in_y = verb.endswith("y") and verb[-2:-1] not in set("aeiou")
    doubled = verb + verb[-1] if re.fullmatch(r"[^aeiou]*[aeiou][^aeiouwxy]", verb) else verb
    stem = verb[:-1] if verb.endswith("e") and not verb.endswith(("ee", "ye", "oe")) else doubled
    third = (
        f"{verb[:-1]}ies"
        if ends_in_y
        else f"{verb}es"
        if verb.endswith(("s", "sh", "ch", "x", "z", "o"))
        else f"{verb}s"
    )
    third = {"have": "has", "be": "is"}.get(verb, third)
    regular = f"{verb[:-1]}ied" if ends_in_y else f"{verb}d" if verb.endswith("e") else f"{doubled}ed"
    past, participle = _IRREGULAR.get(verb, (regular, regular))
    return verb, third, past, participle, f"{stem}ing"


def present_forms(verbs: Iterable[str]) -> list[str]:
    """Return the present forms of verbs."""
    return sorted({form for verb in verbs for form in verb_forms(verb)[:2]}, key=len, reverse=True)


@lru_cache(maxsize=4096)
def number_forms(noun: str) -> tuple[str, ...]:
    """Return a noun, or a group of words that ends in one, in the singular and the plural."""
    singular = noun
    if noun.endswith("ies") and len(noun) > len("ties"):
        singular = f"{noun[:-3]}y"
    elif noun.endswith(("ches", "shes", "xes", "sses")):
        singular = noun[:-2]
    elif noun.endswith("s") and not noun.endswith(("ss", "us", "is")):
        singular = noun[:-1]
    plural = singular + "s"
    if singular.endswith("y") and singular[-2:-1] not in set("aeiou"):
        plural = f"{singular[:-1]}ies"
    elif singular.endswith(("ch", "sh", "x", "ss")):
        plural = f"{singular}es"
    return tuple(dict.fromkeys([noun, singular, plural]))


def alternatives(words: Iterable[str]) -> str:
    """Return a pattern that matches any of some words, the longest first."""
    ordered = sorted(set(words), key=len, reverse=True)
    return "|".join(re.escape(word).replace(r"\ ", r"\s+") for word in ordered) or r"(?!)"
