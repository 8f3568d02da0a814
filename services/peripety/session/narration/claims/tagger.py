"""Parts of speech of the tokens of a sentence."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from peripety.session.narration.claims.english import (
    BASE,
    GERUND,
    PARTICIPLE,
    PAST,
    SPOKEN,
    THIRD,
    function_tags,
    read_tokens,
    verb_table,
    words,
    words_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.session.narration.claims.english import NameTable, ProseWord, VerbReading


_BREAKS = frozenset(";:\u2013\u2014()[].!?\u2026")
_OPEN = words("det poss num adj own")
_ENDS = frozenset({"break", "comma", "conj", "sub", "speech", ""})


def tag_tokens(text: str, names: NameTable) -> list[ProseWord]:
    """Return the tokens of a sentence without speech, with their parts of speech."""
    tokens = read_tokens(text, names)
    _Tagger(tokens).tag_all()
    return tokens


@dataclass(slots=True)
class _Tagger:
    """Tagger of a sentence from left to right; verbs are recognized by their place."""

    tokens: list[ProseWord]
    has_finite: bool = False
    finite_form: str = ""
    undecided: list[int] = field(default_factory=list)

    def tag_all(self) -> None:
        """Set the tags of all tokens."""
        for place, token in enumerate(self.tokens):
            if not token.tag:
                token.tag = self._tag(place, token)
            if token.tag in words("break comma conj sub speech"):
                self._settle()
                self.has_finite = False
            elif token.tag in words("modal be have do"):
                self.has_finite = True
        self._settle()

    def _settle(self) -> None:
        """Make the last undecided word the verb of a part that has none."""
        if not self.has_finite and self.undecided:
            token = self.tokens[self.undecided[-1]]
            token.tag = "verb"
            self.finite_form = token.reading.form if token.reading else ""
        for place in self.undecided:
            if self.tokens[place].tag == "noun":
                self.tokens[place].reading = None
        self.undecided.clear()

    def _before(self, place: int) -> ProseWord | None:
        """Return the previous token that is not an adverb or a negation."""
        place -= 1
        while place >= 0 and (self.tokens[place].tag in {"adv", "neg"}):
            place -= 1
        return self.tokens[place] if place >= 0 else None

    def _next_word(self, place: int) -> str:
        return self.tokens[place + 1].word if place + 1 < len(self.tokens) else ""

    def _tag(self, place: int, token: ProseWord) -> str:
        word, text = token.word, token.text
        if text == SPOKEN:
            return "speech"
        if word == ",":
            return "speech" if place and self.tokens[place - 1].tag == "speech" else "comma"
        if word in _BREAKS or (word == "-" and place):
            return "break"
        if not word[0].isalpha() and word[0] != "'":
            return "other"
        if word == "all" and self._next_word(place) == "but":
            self.tokens[place + 1].tag = "adv"
            return "adv"
        if _word_at(self.tokens, place + 2) == word and self._next_word(place) in words(
            "by in to after for on upon"
        ):
            # `side by side`
            self.tokens[place + 1].tag = self.tokens[place + 2].tag = "adv"
            return "adv"
        special = self._tag_special(place, word)
        if special:
            return special
        if word[0] == "'":
            return self._tag_short(place, token)
        kind = function_tags().get(word)
        if kind == "modal" and place and self.tokens[place - 1].tag in _OPEN and word[0] != "'":
            return "noun"
        if kind == "adv" and place and self.tokens[place - 1].tag in _OPEN and self._begins_name(place):
            return "adj"
        if kind is not None and not (kind in {"adj", "adv"} and self._is_adjective_verb(place, word)):
            return kind
        readings = verb_table().get(word)
        if readings:
            return self._tag_verb(place, token, readings)
        if word.endswith("ly") and word not in words_of("function", "not_adverbs"):
            return "adv"
        return "noun"

    def _can_follow(self, place: int) -> bool:
        """Return True if the next word does not make this one an adverb, as in `you just nod`."""
        following = self.tokens[place + 1] if place + 1 < len(self.tokens) else None
        return (
            following is None
            or bool(following.refs)
            or function_tags().get(following.word) in words("det poss pron prep")
        )

    def _begins_name(self, place: int) -> bool:
        following = self.tokens[place + 1] if place + 1 < len(self.tokens) else None
        return following is not None and (bool(following.refs) or following.word not in function_tags())

    def _is_adjective_verb(self, place: int, word: str) -> bool:
        """Return True if an adjective such as `open` is where only a verb can be."""
        before = self._before(place)
        readings = verb_table().get(word)
        if before is None or not readings:
            return False
        if before.tag == "have":
            return any(one.form == PARTICIPLE for one in readings)
        is_plural = (
            before.tag == "noun"
            and before.word.endswith("s")
            and not self.has_finite
            and word in {"open", "close"}
        )
        return (
            is_plural
            or (word != "still" and before.word in words("you they we i to") and self._can_follow(place))
            or before.tag in {"modal", "do"}
        )

    def _tag_special(self, place: int, word: str) -> str:
        nxt = self._next_word(place)
        if word == "to":
            return "to"
        if word == "no" and nxt in {"longer", "more"}:
            return "neg"
        is_auxiliary = bool(place) and self.tokens[place - 1].tag in words("modal have be")
        if word == "once" and (is_auxiliary or (place and self.tokens[place - 1].tag == "neg")):
            return "adv"
        if is_auxiliary and word == "at" and nxt in words("least last once first"):
            # `would at least be`
            self.tokens[place + 1].tag = "adv"
            return "adv"
        if word == "longer" and place and self.tokens[place - 1].word == "no":
            return "adv"
        if word == "that":
            before = self._before(place)
            if before is not None and before.tag in {"verb", "noun", "name"}:
                following = self.tokens[place + 1] if nxt else None
                if following is not None and (following.refs or following.number is not None):
                    return "sub"
                return "sub" if nxt and (before.tag != "verb" or not self._begins_noun(nxt)) else "det"
            return "det"
        if word == "her":
            following = self.tokens[place + 1] if place + 1 < len(self.tokens) else None
            tag = function_tags().get(nxt) if following is not None and not following.refs else None
            is_end = following is None or not nxt[:1].isalpha()
            return "pron" if is_end or tag in words("prep conj sub det adv poss neg pron") else "poss"
        if word in {"so", "as", "like"}:
            if word == "so":
                return "conj" if place and self.tokens[place - 1].tag == "comma" else "adv"
            if word == "like":
                before = self._before(place)
                if before is not None and before.word in words("you they we i to"):
                    return "noun"
                return "prep"
            return "adv" if nxt in words("well soon long many much few") else "sub"
        if word in {"that's", "there's"}:
            return "pron"
        return ""

    def _begins_noun(self, word: str) -> bool:
        return word not in verb_table() and function_tags().get(word) not in words(
            "pron det poss be have do modal neg num"
        )

    def _tag_short(self, place: int, token: ProseWord) -> str:
        """Return the tag of a short form such as 's: a possessive, or a form of be."""
        before = self.tokens[place - 1] if place else None
        after = self.tokens[place + 1] if place + 1 < len(self.tokens) else None
        while (
            after is not None
            and function_tags().get(after.word) in {"adv", "neg"}
            and after is not self.tokens[-1]
        ):
            after = self.tokens[self.tokens.index(after) + 1]
        forms = (
            {one.form for one in verb_table().get(after.word, ())}
            if after is not None and not after.refs
            else set()
        )
        if (
            token.word == "'d"
            and PARTICIPLE
            in forms
            | ({PARTICIPLE} if after is not None and after.word in words("been had done got") else set())
            and BASE not in forms
        ):
            return "have"
        if token.word != "'s":
            return function_tags().get(token.word, "other")
        if after is not None and after.word in {"got", "been", "had"}:
            return "have"
        if before is None:
            return "other"
        if before.tag == "pron":
            return "be"
        following = self.tokens[place + 1] if place + 1 < len(self.tokens) else None
        if following is None or not following.word[0].isalpha():
            return "own"
        readings = verb_table().get(following.word, ())
        kind = "" if following.refs else function_tags().get(following.word, "")
        is_gerund = any(one.form == GERUND for one in readings) and following.word not in words_of(
            "words", "body"
        )
        second = _word_at(self.tokens, place + 2)
        is_predicate = kind in words("det prep neg poss") or following.word in words(
            "here there dead gone alive now still back already"
        )
        holder = self.tokens[place - 2].tag if place > 1 else ""
        # Before `the x`.
        is_bare = place > 2 and self.tokens[place - 3].tag in words("prep verb")  # noqa: PLR2004
        if (kind in {"prep", "neg"} or following.word in words("a an no")) and not is_bare:
            return "be"
        if holder in words("verb prep det adj") and not is_gerund:
            return "own"
        if (
            is_predicate
            or kind == "adv"
            or (
                PARTICIPLE in forms
                and THIRD not in forms
                and BASE not in forms
                and before.refs
                and function_tags().get(second) in words("prep det poss pron")
            )
            or (is_gerund and function_tags().get(second) in words("prep det poss pron adv"))
        ):
            return "be"
        return "own"

    def _tag_verb(self, place: int, token: ProseWord, readings: Sequence[VerbReading]) -> str:
        before, forms = self._before(place), {one.form: one for one in readings}
        token.reading = readings[0]
        chosen = self._choose_form(place, token, before, forms)
        if chosen is None:
            if not self.undecided or self.undecided[-1] != place:
                token.reading = None
            return "noun"
        token.reading = forms[chosen]
        if chosen in {BASE, THIRD, PAST}:
            if before is None or before.tag not in {"to", "modal", "do"}:
                self.has_finite = True
            self.finite_form = chosen
        return "verb"

    def _choose_form(
        self,
        place: int,
        token: ProseWord,
        before: ProseWord | None,
        forms: Mapping[str, VerbReading],
    ) -> str | None:
        """Return the form of a word that may be a verb; None for a noun or an adjective."""
        tag = before.tag if before is not None else ""
        is_rare = all(one.is_rare for one in forms.values())
        if tag in {"modal", "do", "to"}:
            return (
                BASE
                if BASE in forms and not (tag == "to" and is_rare and not self._has_object(place))
                else None
            )
        if tag in {"be", "have"} or (before is not None and before.word in words_of("function", "get")):
            chosen = GERUND if GERUND in forms else PARTICIPLE if PARTICIPLE in forms else None
            if chosen is not None:
                return chosen
            return None
        if tag in _OPEN or tag == "prep":
            is_gerund = tag == "prep" and GERUND in forms
            return GERUND if is_gerund else None
        if (before is not None and tag in {"pron", "name"}) or (before is not None and before.word == "who"):
            return self._form_after_subject(place, before, forms, is_rare=is_rare)
        if tag == "noun":
            return self._form_after_noun(place, before, forms, is_rare=is_rare)
        if tag == "verb":
            if GERUND in forms:
                return GERUND
            if PARTICIPLE in forms and token.word.endswith(("ed", "n", "t")):
                return PARTICIPLE
            helps = words("help let make dare go come")
            reading = before.reading if before is not None else None
            return BASE if BASE in forms and reading is not None and reading.lemma in helps else None
        return self._form_at_start(place, forms, is_rare=is_rare)

    def _form_after_subject(
        self,
        place: int,
        before: ProseWord,
        forms: Mapping[str, VerbReading],
        *,
        is_rare: bool,
    ) -> str | None:
        is_person = before.tag == "pron" or any(kind == "entity" for kind, _ in before.refs)
        if THIRD in forms and (is_person or not (is_rare and self._is_verb_next(place))):
            return THIRD
        if PAST in forms:
            return PAST
        if GERUND in forms:
            return GERUND
        if PARTICIPLE in forms:
            return PARTICIPLE
        if BASE in forms:
            if (
                not is_person
                and not before.word.endswith("s")
                and self._has_plural(place)
                and self._has_object(place)
            ):
                self.undecided.append(place)
                return None
            is_plural = before.word in words("you they we i") or (
                before.tag == "name" and before.word.endswith("s")
            )
            if is_plural or self._is_after_list(place):
                return BASE
            if before.tag == "pron" and before.word in {"who", "that"}:
                return BASE
            perceives = any(
                one.tag == "verb"
                and one.reading is not None
                and one.reading.lemma in words("see watch hear let make help feel")
                for one in self.tokens[:place]
            )
            return BASE if perceives and not is_rare else None
        return None

    def _is_after_list(self, place: int) -> bool:
        """Return True if the word follows two names joined by and."""
        names = [
            token
            for token in self.tokens[max(0, place - 4) : place]
            if token.tag not in {"adv", "det", "poss"}
        ]
        if len(names) < 3:  # noqa: PLR2004 - `x and y`
            return False
        return names[-2].word == "and" and names[-3].tag in {"name", "pron", "noun"}

    def _form_after_noun(
        self,
        place: int,
        before: ProseWord | None,
        forms: Mapping[str, VerbReading],
        *,
        is_rare: bool,
    ) -> str | None:
        if GERUND in forms:
            return GERUND
        if THIRD in forms:
            if self.has_finite:
                return None
            if is_rare or self._is_verb_next(place):
                self.undecided.append(place)
                return None
            return THIRD
        if PAST in forms and not self.has_finite:
            return PARTICIPLE if self._next_word(place) == "by" and PARTICIPLE in forms else PAST
        if PARTICIPLE in forms:
            return PARTICIPLE
        is_plural = before is not None and before.word.endswith("s") and not before.word.endswith("ss")
        if (
            BASE in forms
            and not self.has_finite
            and not is_plural
            and self._has_plural(place)
            and self._has_object(place)
        ):
            self.undecided.append(place)
            return None
        if BASE in forms and (is_plural or self._is_after_list(place)) and not self.has_finite:
            if is_rare:
                self.undecided.append(place)
                return None
            return BASE
        return None

    def _has_subject(self, place: int) -> bool:
        """Return True if a person or thing is named before, and has no verb yet."""
        start = max(
            (n for n, one in enumerate(self.tokens[:place]) if one.tag in {"break", "speech"}), default=-1
        )
        before = self.tokens[start + 1 : place]
        return any(one.tag in {"name", "pron", "noun"} for one in before) and not any(
            one.tag in {"verb", "be", "have"} for one in before
        )

    def _has_plural(self, place: int) -> bool:
        """Return True if the first noun of this part is a plural."""
        start = max((n for n, one in enumerate(self.tokens[:place]) if one.tag in _ENDS), default=-1)
        first = next((one for one in self.tokens[start + 1 : place] if one.tag in {"noun", "name"}), None)
        return first is not None and first.word.endswith("s") and not first.word.endswith("ss")

    def _form_at_start(self, place: int, forms: Mapping[str, VerbReading], *, is_rare: bool) -> str | None:
        """Return the form of a word behind a comma, a conjunction or speech, or at the start."""
        before = self.tokens[place - 1] if place else None
        has_verb = bool(self.finite_form)
        if before is not None and before.tag == "speech" and (THIRD in forms or PAST in forms):
            return THIRD if THIRD in forms else PAST
        if GERUND in forms:
            return GERUND
        if THIRD in forms and has_verb and self.finite_form != BASE:
            return THIRD if not is_rare or self._has_object(place) else None
        following = self.tokens[place + 1] if place + 1 < len(self.tokens) else None
        has_noun = following is not None and (
            bool(following.refs) or function_tags().get(following.word) in {"det", "poss", "pron"}
        )
        is_named = following is not None and any(kind == "entity" for kind, _ in following.refs)
        speaks = THIRD in forms and bool(forms[THIRD].senses & {"communication", "cognition"})
        if speaks and is_named and before is not None and before.tag == "comma":
            # `All is lost, says Delta`
            return THIRD
        if (
            THIRD in forms
            and before is not None
            and (before.tag == "sub" or (before.tag == "comma" and has_noun and self._has_subject(place)))
        ):
            return THIRD
        if BASE in forms and has_verb and self.finite_form == BASE:
            return BASE if not is_rare or self._has_object(place) else None
        if PAST in forms and has_verb and self.finite_form == PAST:
            return PAST
        if PARTICIPLE in forms:
            return PARTICIPLE
        return None

    def _has_object(self, place: int) -> bool:
        following = self.tokens[place + 1] if place + 1 < len(self.tokens) else None
        if following is None:
            return False
        kind = function_tags().get(following.word)
        return bool(following.refs) or kind in words("det poss pron prep adv") or following.word == "to"

    def _is_verb_next(self, place: int) -> bool:
        """Return True if the next word can be the verb of this part."""
        word = self._next_word(place)
        kind = function_tags().get(word)
        if kind in words("be have do modal"):
            return True
        readings = verb_table().get(word, ()) if kind is None else ()
        return any(one.form in {THIRD, PAST, BASE} and not one.is_rare for one in readings)


def _word_at(tokens: Sequence[ProseWord], place: int) -> str:
    """Return the word at a place; empty behind the end."""
    return tokens[place].word if place < len(tokens) else ""
