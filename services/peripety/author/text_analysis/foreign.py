"""Tags of words in Spanish, German and Chinese, by the form of a word and its neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.author.text_analysis.noun_forms import find_gender
from peripety.author.text_analysis.words import Word, find_classes, find_lemmas

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peripety.author.text_analysis.words import Grammar

_INFINITIVES = ("ar", "er", "ir")
_PRONOUNS = ("selas", "selos", "lo", "la", "los", "las", "le", "les", "se", "me", "te", "nos")
_PARTICIPLES = ("ado", "ada", "ados", "adas", "ido", "ida", "idos", "idas")
_BEFORE_NOUN = ("det", "poss", "num", "adj", "prep", "owner")
_LEAST_SUFFIX = 4
_ABSTRACT_ENDS = ("kunde", "ung", "heit", "keit", "ion", "t\u00e4t")
"""Endings of feminine German nouns that never are persons."""
_LONGEST = 8
_PAIR, _LASTING = 2, "\u7740"


def _find_noun_classes(word: str, code: str) -> tuple[str, ...]:
    names = find_classes(word, code)
    return tuple(name.partition(".")[2] for name in names if name.startswith("noun"))


def tag_spanish(words: Sequence[Word], grammar: Grammar) -> None:
    """Set the tags of the words of a Spanish text that have none."""
    for place, word in enumerate(words):
        if word.tag:
            continue
        left = words[place - 1] if place else None
        right = words[place + 1] if place + 1 < len(words) else None
        word.tag = (
            "noun" if word.low in grammar.words("things", "harm") else _choose_spanish(word, left, right)
        )
        word.lemma = _find_spanish_verb(word.low) if word.tag == "verb" else _find_singular(word.low)
        if word.tag == "name":
            word.lemma = word.text
        elif word.tag == "noun":
            base = find_lemmas(word.low, "es")[-1]
            word.classes = _find_noun_classes(word.lemma, "es") or _find_noun_classes(base, "es")
        if word.tag == "verb" and word.low.startswith(word.lemma) and word.lemma.endswith(_INFINITIVES):
            word.low = word.lemma  # an infinitive, also with a pronoun
    _mark_spanish_orders(words)


def _choose_spanish(word: Word, left: Word | None, right: Word | None) -> str:
    verb = _find_spanish_verb(word.low)
    infinitive = bool(verb) and word.low.startswith(verb)
    before = left.tag if left is not None else ""
    if word.is_capitalized and not word.first:
        return "name"
    # A noun may end like a participle: "queda ..." has no participle after it.
    participle = word.low.endswith(_PARTICIPLES) and before != "have"
    if before in ("noun", "name") and left is not None and left.end + 1 == word.start:
        return "verb" if verb and not infinitive and not participle else "adj"
    if before in _BEFORE_NOUN:
        known = _find_noun_classes(find_lemmas(word.low, "es")[-1], "es")
        if infinitive and before == "prep" and not known:
            return "verb"
        follows = right is not None and not right.tag and not _find_spanish_verb(right.low) and not known
        return "adj" if follows and before in ("det", "poss", "num") else "noun"
    if verb and not participle:
        return "verb"
    return "adj" if participle or before in ("be", "adv") else "noun"


def _find_singular(low: str) -> str:
    """Return the singular of a Spanish noun, in its own gender."""
    base = find_lemmas(low, "es")[-1]
    if not low.endswith("s") or base == low:
        return low
    return base if low == f"{base}es" or not low.startswith(base[:-1]) else low[:-1]


def _find_spanish_verb(low: str) -> str:
    """Return the infinitive of a verb form; empty for a word that has none."""
    for ending in ("", *_PRONOUNS):
        stem = low.removesuffix(ending)
        if stem.endswith(_INFINITIVES) and low.endswith(ending) and find_lemmas(stem, "es")[-1] == stem:
            return stem
    lemma = find_lemmas(low, "es")[-1]
    return lemma if lemma.endswith(_INFINITIVES) and lemma != low else ""


def _mark_spanish_orders(words: Sequence[Word]) -> None:
    """Give orders, such as a form in "-a" at the start of a sentence, the form of an infinitive."""
    for place, word in enumerate(words):
        after = words[place + 1] if place + 1 < len(words) else None
        order = word.first and word.tag == "verb" and word.low.endswith(("a", "e", "d"))
        if order and after is not None and after.tag in ("det", "poss", "prep", "num", "wh"):
            word.low = word.lemma


def tag_german(words: Sequence[Word], grammar: Grammar) -> None:
    """Set the tags of the words of a German text that have none; join verbs with their separate prefixes."""
    for place, word in enumerate(words):
        left = words[place - 1] if place else None
        right = words[place + 1] if place + 1 < len(words) else None
        if word.first and word.tag in ("adj", ""):
            word.tag = ""
        if word.tag:
            continue
        word.tag = _choose_german(word, left, right, grammar)
        base = word.text if word.tag in ("noun", "name") else word.low
        word.lemma = find_lemmas(base, "de")[-1]
        if word.tag == "noun":
            word.classes = _find_german_classes(word.lemma)
        elif word.tag == "name":
            word.lemma = word.text
        elif word.tag == "verb":
            word.lemma = word.lemma.lower()
    _join_german_prefixes(words, grammar)


def _choose_german(word: Word, left: Word | None, right: Word | None, grammar: Grammar) -> str:
    before = left.tag if left is not None else ""
    base = find_lemmas(word.low, "de")[-1].lower()
    verb = base.endswith(("en", "ern", "eln"))
    if word.is_capitalized:
        takes = right is not None and right.tag in ("det", "poss", "pron", "prep", "player", "adv")
        apart = right is not None and right.low in grammar.words("goals", "particles")
        if word.first and verb and (takes or apart):
            return "verb"
        is_titled = left is not None and before == "name" and left.low in grammar.words("people", "titles")
        is_named = before == "noun" or is_titled or (left is not None and left.low == "namens")
        if left is not None and is_named and left.end + 1 == word.start:
            return "name"
        lone = before == "prep" and left is not None and left.low in ("nach", "aus", "in", "bei")
        return "name" if lone and not _find_german_classes(find_lemmas(word.text, "de")[-1]) else "noun"
    follows = right is not None and right.is_capitalized and not right.tag
    if follows and before in _BEFORE_NOUN:
        return "adj"
    if follows and left is not None and left.text == "," and not verb:
        return "adj"
    return "verb" if verb else "adj"


def _find_german_classes(lemma: str) -> tuple[str, ...]:
    """Return the classes of a noun, or of the longest known noun at its end."""
    suffixes = (lemma[start:] for start in range(max(len(lemma) - _LEAST_SUFFIX + 1, 1)))
    forms = (form for suffix in suffixes for form in (suffix, suffix.removesuffix("in")))
    found = (_find_noun_classes(form.capitalize(), "de") for form in forms if form)
    classes = next((classes for classes in found if classes), ())
    is_abstract = lemma.endswith(_ABSTRACT_ENDS) and find_gender(lemma, "de") == "f"
    return () if is_abstract and classes[:1] == ("person",) else classes


def _join_german_prefixes(words: Sequence[Word], grammar: Grammar) -> None:
    """Add the prefix at the end of a clause to the verb at its start; mark orders as infinitives."""
    prefixes = grammar.words("goals", "particles")
    for place, word in enumerate(words):
        if word.tag != "verb" or not word.first:
            continue
        end = next((at for at in range(place, len(words)) if words[at].tag in ("end", "mark")), len(words))
        last = words[end - 1]
        if last is not word and last.low in prefixes and not last.is_noun:
            word.lemma = last.low + word.lemma
            last.tag = "particle"
        if not word.low.endswith("t"):
            word.low = word.lemma


def split_chinese(text: str, grammar: Grammar) -> list[Word]:
    """Return the words of a Chinese text with tags: the longest known word at each place."""
    words: list[Word] = []
    place, first = 0, True
    while place < len(text):
        length, tag = _measure_chinese(text, place, words, grammar)
        part = text[place : place + length]
        if tag == "verb" and words and words[-1].tag == "measure":
            tag = "noun"
        if not part.isspace():
            word = Word(part, part, tag, part, place, place + length, first)
            if tag == "noun":
                office = length > 1 and part[-1] in grammar.words("people", "offices")
                word.classes = ("person",) if office else _find_noun_classes(part, "zh")
            words.append(word)
            first = tag == "end" or (first and tag == "mark")
        place += length
    return list(_merge_chinese(words, grammar))


def _measure_chinese(text: str, place: int, words: Sequence[Word], grammar: Grammar) -> tuple[int, str]:
    """Return the length and the tag of the word at a place."""
    char, pair = text[place], text[place : place + 2]
    if not char.isalnum():
        return 1, "end" if char in "\u3002\uff01\uff1f!?\n\u2026." else "mark"
    if char in grammar.words("people", "titles") and not find_classes(pair, "zh"):
        familiar = char == "\u963f" or pair[1:] in grammar.words("people", "surnames")
        if familiar:
            return 2, "name"
    measures = grammar.words("people", "measures")
    if char in grammar.numbers and pair[1:] in measures:
        return 1, "num"
    if char in measures and words and words[-1].tag in ("num", "det"):
        return 1, "measure"
    for length in range(min(_LONGEST, len(text) - place), 0, -1):
        tag = _find_chinese_tag(text[place : place + length], grammar)
        if tag:
            return length, tag
    return 1, "noun"


def _find_chinese_tag(part: str, grammar: Grammar) -> str:
    """Return the tag of a word; empty for an unknown one."""
    if part == "\u7684":
        return "owner"
    offices = grammar.words("people", "offices")
    tables = (
        ("num", part.isdigit() or all(char in grammar.numbers for char in part)),
        ("verb", part in grammar.goal_verbs),
        ("noun", part[1:] != "" and part[-1] in offices and bool(find_classes(part, "zh"))),
        ("noun", part in grammar.pairs("times", "units") or part in grammar.pairs("times", "points")),
        ("noun", part in grammar.words("things", "harm") or part in grammar.words("people", "foes")),
        ("verb", len(part) == _PAIR and part[-1] == _LASTING and part not in grammar.tags),
    )
    found = next((tag for tag, applies in tables if applies), "") or grammar.tags.get(part, "")
    names = find_classes(part, "zh")
    kinds = {"noun": "noun", "verb": "verb", "adjective": "adj", "adverb": "adv"}
    return found or (kinds[names[0].partition(".")[0]] if names else "")


def _is_open(word: Word, grammar: Grammar) -> bool:
    """Return True for an unknown word, which further unknown characters can continue."""
    return word.tag == "noun" and not word.classes and word.low not in grammar.pairs("times", "units")


def _merge_chinese(words: Sequence[Word], grammar: Grammar) -> Iterator[Word]:
    """Yield the words, with unknown characters joined; an unknown word after a person is a name."""
    last: Word | None = None
    for word in words:
        if last is not None and word.low in grammar.words("people", "offices") and last.tag == "noun":
            last.text = last.low = last.lemma = last.text + word.text
            last.end, last.classes = word.end, ("person",)
            continue
        short = len(word.text) == 1
        after_short = last is not None and len(last.text) == 1 and word.tag in ("noun", "verb", "adj")
        loose = (
            short
            and word.low not in grammar.goal_verbs
            and (after_short or (word.tag == "noun" and not word.classes))
        )
        if last is not None and loose and _is_open(last, grammar) and last.end == word.start:
            last.text = last.low = last.lemma = last.text + word.text
            last.end = word.end
            last.classes = _find_noun_classes(last.text, "zh")
            continue
        if last is not None:
            yield last
        last = word
    if last is not None:
        yield last
