"""Tags of words: function words by a table, other words by their senses and their neighbours."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

from peripety.author.text_analysis.foreign import split_chinese, tag_german, tag_spanish
from peripety.author.text_analysis.words import find_classes, find_currency, find_lemmas, split_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

from peripety.author.text_analysis.words import Grammar, Word

_NEAR = 5
_NEVER = 9
"""Rank of a kind that a word cannot have."""
_AFTER_VERB = ("det", "poss", "player", "pron", "num")
_BEFORE_NOUN = ("det", "poss", "num", "adj", "prep", "owner")
_OBJECTS = ("us", "me", "him", "them", "her", "ones")
_PLURALS = ("men", "women", "people", "police")
_CLAIMING = ("verb.cognition", "verb.communication", "verb.stative")
"""Classes of verbs whose object may be a clause: "prove the alpha is safe"."""
_SHORT_FORMS = {"n't": "neg", "'ve": "have", "'ll": "modal", "'d": "modal"}


def tag_words(text: str, grammar: Grammar) -> list[Word]:
    """Return the words of a text with tags and lemmas."""
    if grammar.code == "zh":
        return _mark_foes(split_chinese(text, grammar), grammar)
    words = split_words(text)
    for left, word in zip([None, *words], words, strict=False):
        if not word.tag:
            word.lemma, word.tag = word.low, _find_fixed_tag(word, left, grammar)
    _free_nouns(words, grammar)
    {"en": _tag_english, "es": tag_spanish, "de": tag_german}[grammar.code](words, grammar)
    return _mark_foes(words, grammar)


def _free_nouns(words: Sequence[Word], grammar: Grammar) -> None:
    """Tag adverbs that are nouns here: "protect the alpha well", but not "know the alpha well"."""
    nouns, modals = grammar.words("things", "nouns"), grammar.words("things", "modals")
    for place, word in enumerate(words):
        if word.low in modals and _is_thing(words, place):
            _set_noun(word)
        if word.low not in nouns or place < 1:
            continue
        phrase = [*takewhile(lambda one: not one.tag, reversed(words[:place]))]
        start = place - len(phrase) - 1
        opens = start >= 0 and words[start].tag in ("det", "poss")
        after = words[place + 1] if place + 1 < len(words) else None
        ends = after is None or after.tag
        verb = words[start - 1] if start > 0 else None
        is_known = verb is not None and any(
            name in ("verb.cognition", "verb.stative")
            for name in find_classes(find_lemmas(verb.low, "en")[-1])[:1]
        )
        if opens and ends and (not phrase or (verb is not None and len(phrase) < _NEAR and not is_known)):
            _set_noun(word)


def _set_noun(word: Word) -> None:
    word.tag, word.lemma = "noun", word.low
    names = find_classes(word.low)
    word.classes = tuple(name.partition(".")[2] for name in names if name.startswith("noun"))


def _is_thing(words: Sequence[Word], place: int) -> bool:
    """Return True for a modal that is a noun here: "a missing will", "a can of fuel"."""
    phrase = [*takewhile(lambda one: not one.tag, reversed(words[:place]))]
    start = place - len(phrase) - 1
    opens = start >= 0 and words[start].tag in ("det", "poss", "num")
    is_described = all(find_classes(one.low)[:1] == ("adjective",) for one in phrase)
    after = words[place + 1] if place + 1 < len(words) else None
    return opens and is_described and (after is None or after.tag in ("end", "mark", "prep", "conj"))


def _mark_foes(words: list[Word], grammar: Grammar) -> list[Word]:
    """Give the nouns of persons who are against others their class; return the words."""
    foes = grammar.words("people", "foes")
    for word in words:
        if word.tag == "noun" and not foes.isdisjoint({word.lemma.casefold(), word.low}):
            word.lemma = word.lemma if word.lemma.casefold() in foes else word.text
            word.classes = ("person.foe",)
    return words


def _tag_english(words: Sequence[Word], grammar: Grammar) -> None:
    for place, word in enumerate(words):
        if not word.tag:
            _EnglishTagger(words, place, grammar).tag()
    _mark_short_forms(words)


def _find_fixed_tag(word: Word, left: Word | None, grammar: Grammar) -> str:
    """Return the tag of a number or a function word; empty for other words."""
    if word.text[0].isdigit() and word.text[-1].isalpha():
        return "adj"
    if word.text[0].isdigit() or (find_currency(word) and len(word.text) > 1):
        return "num"
    if left is not None and left.tag == "num" and word.low in grammar.words("times", "left"):
        return "adj"
    if left is not None and left.low == "next" and word.low in grammar.words("things", "neighbouring"):
        return "adv"
    if word.low == "only" and left is not None and left.tag in ("det", "poss"):
        return "adj"
    return _SHORT_FORMS.get(word.low) or grammar.tags.get(word.low, "")


def _mark_short_forms(words: Sequence[Word]) -> None:
    """Decide whether each "'s" is a verb or marks an owner."""
    for place, word in enumerate(words):
        if word.low == "'s" and place:
            before, after = words[place - 1], words[place + 1] if place + 1 < len(words) else None
            owner = before.is_noun and after is not None and (after.is_noun or after.tag in ("adj", "num"))
            word.tag, word.lemma = ("owner", "'s") if owner else ("be", "be")


class _EnglishTagger:
    """Choice of a tag for one word, between tagged words on its left and untagged ones on its right."""

    def __init__(self, words: Sequence[Word], place: int, grammar: Grammar) -> None:
        self._words, self._place, self._grammar = words, place, grammar
        self._word = words[place]
        self._left = words[place - 1].tag if place else ""
        self._left_word = words[place - 1] if place else words[place]
        self._right = words[place + 1] if place + 1 < len(words) else None
        self._right_tag = self._right.tag if self._right is not None else "end"
        low = self._word.low
        self._noun = self._find_lemma("noun") or self._strip_ending()
        self._verb = self._find_lemma("verb") or self._find_act()
        self._verb_rank = self._rank("verb", self._verb)
        self._noun_rank = self._rank("noun", self._noun)
        self._adjective_rank = self._rank("adjective", low)
        self._form = self._find_form()

    def tag(self) -> None:
        """Set the tag, the lemma and the classes of the word."""
        word = self._word
        kind = self._choose()
        if kind == "name":
            word.lemma = word.text
            word.classes = tuple(each.partition(".")[2] for each in find_classes(word.text))
        elif kind in ("noun", "verb"):
            word.lemma = (self._noun if kind == "noun" else self._verb) or word.low
            names = find_classes(word.lemma) or find_classes(word.lemma.rpartition("-")[2])
            word.classes = tuple(name.partition(".")[2] for name in names if name.startswith(kind))
        word.tag = kind

    def _find_lemma(self, kind: str) -> str:
        """Return the lemma that the word can have in a kind; empty if it cannot have it."""
        lemmas = find_lemmas(self._word.low, "en")
        if kind == "noun" and self._word.low.endswith("s") and self._rank("noun", lemmas[-1]) == 0:
            # The plural of a noun may be a noun of its own in the table.
            return lemmas[-1]
        return next((lemma for lemma in lemmas if self._rank(kind, lemma) < _NEVER), "")

    def _find_act(self) -> str:
        """Return the verb of a gerund that the lemmas have as a noun only: "two alphas building a beta"."""
        low = self._word.low
        if (
            self._left not in ("noun", "name")
            or not low.endswith("ing")
            or self._right_tag not in ("det", "poss")
        ):
            return ""
        stem = low.removesuffix("ing")
        stems = (stem, f"{stem}e", stem[:-1])
        return next((one for one in stems if self._rank("verb", one) < _NEVER), "")

    def _strip_ending(self) -> str:
        """Return the singular of a noun that the lemmas miss."""
        low = self._word.low
        rows = [
            (low.removesuffix(end) + other)
            for end, other in (("ies", "y"), ("es", ""), ("s", ""))
            if low.endswith(end)
        ]
        return next((lemma for lemma in rows if self._rank("noun", lemma) < _NEVER), "")

    def _rank(self, kind: str, lemma: str) -> int:
        kinds = [name.partition(".")[0] for name in find_classes(lemma)] if lemma else []
        return kinds.index(kind) if kind in kinds else _NEVER

    def _find_form(self) -> str:
        """Return "base", "s", "ing", "ed", or empty for a word of another kind."""
        low = self._word.low
        if not self._verb:
            return ""
        if low == self._verb:
            return "base"
        return "ing" if low.endswith("ing") else "s" if low.endswith("s") else "ed"

    def _choose(self) -> str:
        if self._is_name():
            return "name"
        if not self._noun and not self._verb and self._adjective_rank == _NEVER:
            return self._guess_unknown()
        if self._is_plain_verb():
            return "verb"
        return next(choose() for applies, choose in self._iter_places() if applies)

    def _iter_places(self) -> Iterator[tuple[bool, Callable[[], str]]]:
        """Yield the choice for each place of a word in its sentence, with whether it is in that place."""
        yield self._word.first or self._opens_fragment(), self._choose_first
        yield self._left in _BEFORE_NOUN, self._choose_in_phrase
        yield self._left in ("be", "have"), self._choose_after_be
        yield self._left in ("noun", "name"), self._choose_after_noun
        yield True, self._choose_alone

    def _is_name(self) -> bool:
        word = self._word
        if not word.is_capitalized:
            return False
        known = self._noun or self._verb or self._adjective_rank < _NEVER
        if word.first and word.low != self._noun and self._right is not None and self._is_singular_verb():
            # A plural has no such verb.
            return True
        if word.first and self._left_word.text == ":" and self._noun:
            # A list of names follows, unless it is an order or a description.
            return not self._verb and self._adjective_rank == _NEVER
        if word.first or self._left_word.text == '"':
            return not known
        if self._is_origin():
            return False
        return not word.text.isupper() or len(word.text) > 1

    def _is_origin(self) -> bool:
        """Return True for an adjective of a country or town before a person: "a Roman general"."""
        ends = tuple(self._grammar.words("people", "origins"))
        if self._adjective_rank or self._right is None or self._right_tag or self._right.is_capitalized:
            return False
        lemma = find_lemmas(self._right.low, "en")[-1]
        return self._word.low.endswith(ends) and find_classes(lemma)[:1] in [
            ("noun.person",),
            ("noun.person.foe",),
        ]

    def _is_singular_verb(self) -> bool:
        """Return True if the word looks like a plural, and the next one is a verb of one person."""
        low, right = self._word.low, self._right.low if self._right is not None else ""
        is_plural = low.endswith("s") and self._form != "s" and not find_classes(low)
        lemma = find_lemmas(right, "en")[-1]
        is_verb = right.endswith("s") and lemma != right and find_classes(lemma)[:1] != ()
        return is_plural and (right in ("is", "has", "was") or (is_verb and self._is_mostly_verb(lemma)))

    @staticmethod
    def _is_mostly_verb(lemma: str) -> bool:
        return find_classes(lemma)[0].startswith("verb")

    def _guess_unknown(self) -> str:
        low, follows = self._word.low, self._noun_follows()
        first, _, last = low.rpartition("-")
        if first:
            classes = find_classes(find_lemmas(last, "en")[-1])
            is_noun = bool(classes) and classes[0].startswith("noun") and not last.endswith(("ed", "ing"))
            self._noun = low if is_noun else ""
            return "noun" if is_noun and not follows else "adj"
        if low.endswith("ly"):
            return "adv"
        if low.endswith(("ing", "ed")):
            return "adj" if follows else "verb"
        self._noun = find_lemmas(low, "en")[-1]
        return "noun"

    def _noun_follows(self) -> bool:
        """Return True if the next word can be a noun or an adjective of the same phrase."""
        right = self._right
        if right is None or right.tag:
            return False
        firsts = [name for lemma in find_lemmas(right.low, "en") for name in find_classes(lemma)[:1]]
        known = any(name.startswith(("noun", "adjective")) for name in firsts)
        return right.is_capitalized or known or right.low.endswith("s")

    def _is_plain_verb(self) -> bool:
        """Return True for a verb right after an infinitive mark, a modal, or a subject."""
        if not self._verb:
            return False
        if self._verb == "do" and self._right_tag == "neg":
            return True
        if self._left in ("player", "pron"):
            if self._left_word.low in _OBJECTS:
                return self._verb_rank == 0
            return self._adjective_rank > 0 or self._form != "base"
        likely = self._verb_rank == 0
        after_word = self._left in ("neg", "adv", "wh") and self._form != "ing"
        return self._left in ("to", "modal") or (
            likely and (after_word or self._is_relative() or self._is_helped())
        )

    def _is_relative(self) -> bool:
        """Return True after "that" behind a noun."""
        before = self._words[self._place - 2] if self._place > 1 else None
        return self._left_word.low == "that" and before is not None and before.is_noun

    def _is_helped(self) -> bool:
        """Return True for a plain verb after a person who is helped: "help them act"."""
        helps = self._grammar.words("goals", "helps")
        near = self._words[max(self._place - _NEAR, 0) : self._place]
        led = any(word.lemma in helps and word.tag == "verb" for word in near)
        return led and self._left in ("noun", "name") and self._form == "base"

    def _opens_fragment(self) -> bool:
        low = self._left_word.low
        return low in self._grammar.words("goals", "openers") and (self._left_word.first or low != "and")

    def _choose_first(self) -> str:
        right, low = self._right_tag, self._right.low if self._right is not None else ""
        if self._form == "base":
            if right in _AFTER_VERB and not self._is_numbered():
                return "verb"
            tells = low in self._grammar.words("things", "telling")
            if self._noun and (right == "num" or tells or self._opens_subject()):
                return "noun"
            takes = right in ("prep", "adv", "neg", "wh") or (
                self._right is not None and self._right.is_capitalized
            )
            subject = self._noun_rank == 0 and right == "prep" and low != "from"
            subject = subject or self._is_title()
            if not subject and (self._verb_rank == 0 or (takes and self._verb_rank < _NEVER)):
                return "verb"
        if self._form == "ing":
            return "verb"
        if self._form == "s" and self._noun and right in ("be", "have", "modal"):
            # The subject of the verb after it.
            return "noun"
        modifies = self._adjective_rank < _NEVER or self._form == "ed"
        return "adj" if modifies and self._noun_follows() else self._best()

    def _is_numbered(self) -> bool:
        """Return True for a noun with its number before a predicate: "gate 3 of the alpha must"."""
        if self._right_tag != "num" or self._noun_rank:
            return False
        after = self._words[self._place + 2] if self._place + 2 < len(self._words) else None
        of = self._grammar.words("things", "of")
        return after is not None and (after.tag in ("be", "have", "modal") or after.low in of)

    def _opens_subject(self) -> bool:
        """Return True if the next nouns, without an article, are a subject: "repair robot wakes up".

        A state right after the word shows a subject, too: "rent due on Monday".
        """
        classes = find_classes(self._verb)
        if self._right is None or self._right_tag or classes[:1] in [(each,) for each in _CLAIMING]:
            return False
        if self._right.low in self._grammar.words("goals", "states"):
            then = self._words[self._place + 2] if self._place + 2 < len(self._words) else None
            return then is None or bool(then.tag)
        until = self._grammar.words("times", "before")
        for place in range(self._place + 2, len(self._words)):
            word = self._words[place]
            if word.tag in ("be", "have", "modal"):
                return not word.low.endswith("ing")
            if not word.tag and self._is_verb_of_one(place):
                return True
            if word.tag not in ("", "adv", "prep") or word.low in until:
                return False
        return False

    def _is_verb_of_one(self, place: int) -> bool:
        """Return True if a word that is not tagged yet is a verb of one person, and not a plural."""
        low = self._words[place].low
        lemma = find_lemmas(low, "en")[-1]
        classes = find_classes(lemma)
        if not low.endswith("s") or lemma == low or not classes or not self._is_mostly_verb(lemma):
            return False
        then = self._words[place + 1] if place + 1 < len(self._words) else None
        if all(name.startswith("verb") for name in classes):
            return True
        # A plural ends its phrase: "fix kitchen sinks".
        particles = self._grammar.words("goals", "particles")
        is_adjective = then is not None and find_classes(then.low)[:1] == ("adjective",)
        return then is not None and (
            then.low in particles or is_adjective or then.tag in (*_AFTER_VERB, "adv", "to")
        )

    def _is_title(self) -> bool:
        """Return True for a noun of persons before the name of a subject, a title: "... Alpha is stuck"."""
        is_named = self._right is not None and self._right.is_capitalized
        then = next((word for word in self._words[self._place + 2 :] if not word.is_capitalized), None)
        is_subject = then is not None and then.tag in ("be", "have", "modal", "conj")
        nouns = [name for name in find_classes(self._noun) if name.startswith("noun.")] if self._noun else []
        return is_named and is_subject and bool(nouns) and nouns[0].startswith("noun.person")

    def _choose_in_phrase(self) -> str:
        follows = self._noun_follows()
        low = self._right.low if self._right is not None else ""
        if self._form == "s" and self._left == "num" and (low == "to" or self._right_tag in ("det", "poss")):
            return "verb"
        if self._form == "ing" and self._is_prevented():
            return "verb"
        if self._form in ("ing", "ed") and self._word.low != self._noun:
            verb = self._left == "prep" and not follows
            is_participle = self._form == "ed" and self._rank("noun", self._word.low) == _NEVER
            follows = follows or (is_participle and self._right is not None and not self._right_tag)
            return "verb" if verb else "adj" if follows or self._noun_rank == _NEVER else "noun"
        if self._form == "ing" and self._left == "prep" and self._right_tag in _AFTER_VERB:
            return "verb"
        if (
            follows and self._adjective_rank < self._noun_rank
        ) or self._noun_rank == _NEVER > self._adjective_rank:
            return "adj"
        return "noun" if self._noun else self._best()

    def _is_prevented(self) -> bool:
        """Return True after "from" behind a verb such as "keep": "keep them from leaving"."""
        near = self._words[max(self._place - _NEAR - 1, 0) : self._place]
        keeps = self._grammar.words("goals", "preventing")
        return self._left_word.low in self._grammar.words("things", "off") and any(
            word.tag == "verb" and word.lemma in keeps for word in near
        )

    def _choose_after_be(self) -> str:
        follows = self._noun_follows()
        if self._form in ("ing", "ed") and not (follows and self._adjective_rank < _NEVER):
            return "adj" if follows and self._form == "ed" else "verb"
        if (follows and self._adjective_rank < _NEVER) or self._adjective_rank < self._noun_rank:
            return "adj"
        return "noun" if self._noun else self._best()

    def _choose_after_noun(self) -> str:
        if self._right_tag in ("be", "have", "modal") and self._form == "s" and self._noun:
            # The subject of the verb after it.
            return "noun"
        if self._is_verb_of_noun() or self._word.low in self._grammar.words("people", "naming"):
            return "verb"
        if self._form == "ed" and self._verb_rank > self._noun_rank:
            return "noun"
        if self._adjective_rank < self._noun_rank and not self._noun_follows():
            return "adj"
        return "noun" if self._noun else self._best()

    def _is_verb_of_noun(self) -> bool:
        """Return True if the noun on the left is the subject of the word."""
        is_plural = self._left_word.low != self._left_word.lemma or self._left_word.low in _PLURALS
        plural = self._left == "noun" and (is_plural or self._is_shared_wish())
        likely = self._verb_rank <= self._noun_rank
        takes = self._right_tag in _AFTER_VERB
        gerund = self._right is not None and self._right.low.endswith("ing")
        if self._form == "s":
            if self._word.low in self._grammar.words("things", "lasting"):
                return True
            is_told = self._right_tag in ("mark", "end") and self._is_all_of_clause()
            is_agreeing = not plural or (takes and self._is_after_prep())
            return is_agreeing and (self._verb_rank == 0 or takes or self._right_tag == "to" or is_told)
        if self._form == "base":
            after_plural = plural and (likely or takes or self._right_tag == "prep")
            led = takes or self._right_tag in ("prep", "adv") or self._left == "name" or gerund
            if not plural and self._opens_singular():
                return False
            return after_plural or (self._verb_rank < self._noun_rank and led)
        if self._form == "ing":
            is_act = takes or self._right_tag == "pron"
            return self._noun_rank > 0 or self._word.low != self._noun or is_act or self._is_after_without()
        return self._form == "ed" and likely

    def _is_shared_wish(self) -> bool:
        """Return True for what the members of a group want or think: "the team want"."""
        is_body = self._left_word.classes[:1] == ("group.people",) and self._form == "base"
        return is_body and find_classes(self._verb)[:1] in (("verb.emotion",), ("verb.cognition",))

    def _is_after_prep(self) -> bool:
        """Return True if a preposition leads the noun on the left, so another noun may be the subject."""
        place = self._place - 1
        while place > 0 and self._words[place].tag in ("noun", "adj", "det", "poss", "num"):
            place -= 1
        return self._words[place].tag == "prep"

    def _opens_singular(self) -> bool:
        """Return True if the noun on the left has the article "a", with which no base form agrees."""
        place = self._place - 1
        while place > 0 and self._words[place].tag in ("noun", "adj"):
            place -= 1
        return self._words[place].low in ("a", "an")

    def _is_all_of_clause(self) -> bool:
        """Return True for what happens to a thing, in a clause without another verb: "the x leaks,"."""
        if self._verb not in self._grammar.words("things", "attack"):
            return False
        place = self._place - 1
        while place >= 0 and self._words[place].tag in ("noun", "adj"):
            place -= 1
        starts = place <= 0 or self._words[place].first or self._words[place - 1].tag in ("mark", "conj")
        return place >= 0 and starts and self._words[place].tag in ("det", "poss")

    def _is_after_without(self) -> bool:
        """Return True if the noun on the left does not do it: "without a person ..."."""
        near = self._words[max(self._place - _NEAR, 0) : self._place]
        return any(word.tag == "prep" and word.low in self._grammar.words("things", "none") for word in near)

    def _choose_alone(self) -> str:
        modifies = self._adjective_rank < _NEVER and self._adjective_rank <= self._noun_rank
        is_listed = self._left == "mark" and self._form == "base" and self._right_tag == "prep"
        if is_listed and self._noun_rank < min(self._adjective_rank, _NEVER):
            return "noun"
        participle = self._form in ("ing", "ed") and self._rank("noun", self._word.low) == _NEVER
        return "adj" if (modifies or participle) and self._noun_follows() else self._best()

    def _best(self) -> str:
        """Return the most frequent kind of the word."""
        ranks = {
            "verb": self._verb_rank,
            "noun": self._noun_rank,
            "adj": self._adjective_rank,
            "adv": self._rank("adverb", self._word.low),
        }
        if self._form in ("ing", "ed") and self._word.low != self._noun:
            ranks["verb"] = 0
        best = min(ranks, key=lambda kind: ranks[kind])
        return best if ranks[best] < _NEVER else "noun"
