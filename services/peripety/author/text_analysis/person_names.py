"""Detection of persons by grammar: by their verbs and by the relative pronouns after them.

Only signs exclusive to persons count. A verb that also occurs with things needs a second sign. A doubtful
term stays a thing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.author.text_analysis.languages import Language, Token


_MAX_VERB_DISTANCE = 6
"""The maximum number of words between a subject and its verb."""
_MAX_NOUN_DISTANCE = 3
"""The maximum number of words between the start of a subject and its noun."""
_MAX_VERB_CONTEXT = 3
"""The maximum number of words after a verb that may confirm it."""
_MAX_GROUP_SIZE = 3
"""The maximum size of a group; a larger one counts as one person."""


def find_people(
    rows: Sequence[Sequence[Token]],
    names: Sequence[bool],
    language: Language,
) -> Mapping[int, int]:
    """Return the rows that name persons, with the number of persons of each.

    Args:
        rows: the words of a text; words that name a thing together are one row.
        names: True for each row that names something.
        language: the language of the text.
    """
    clause = _Grammar(rows, names, language)
    found: dict[int, int] = {}
    for place, name in enumerate(names):
        if name and (person := clause.find_person(place)):
            found.setdefault(*person)
    return found


def find_player(rows: Sequence[Sequence[Token]], names: Sequence[bool], language: Language) -> int | None:
    """Return the row with the role of the player, as in "I am the ..."; None without one.

    Args:
        rows: the words of a text; words that name a thing together are one row.
        names: True for each row that names something.
        language: the language of the text.
    """
    clause = _Grammar(rows, names, language)
    return next((place for place, name in enumerate(names) if name and clause.is_player(place)), None)


class _Grammar:
    """Words before and after the rows that name something."""

    def __init__(self, rows: Sequence[Sequence[Token]], names: Sequence[bool], language: Language) -> None:
        self._rows = rows
        self._names = names
        self._language = language
        self._words = language.people
        self._apart = language.people.links | language.people.joins | language.people.predicate_words
        self._counts = {
            **{word: number for word, number in language.numbers.items() if number > 0},
            **language.people.parties,
        }

    def find_person(self, place: int) -> tuple[int, int] | None:
        """Return the row of the person at a row, and the number of persons; None for a thing."""
        following = self._word_at(place + 1)
        if following in self._words.who and not self._rows[place + 1][0].opens_sentence:
            return place, self._group_size(self._find_start(place), place)
        is_relative = following in self._words.relatives
        if is_relative and self._rows[place + 1][0].opens_sentence:
            return None
        verb = self._find_verb(place + 1 + is_relative)
        if verb is None or self._is_inverted(verb, is_relative=is_relative):
            return None
        if self._word_at(verb) in self._words.sayings and not (
            self._is_group(place) or self._has_second_verb(verb)
        ):
            return None
        return (
            (place, self._group_size(self._find_start(place), place))
            if is_relative
            else self._find_subject(place)
        )

    def is_player(self, place: int) -> bool:
        """Return True if a row is the role of the player."""
        row = self._rows[place]
        if any(token.casefolded in self._language.units for token in row):
            return False
        before = place - 1
        while (
            place - before < _MAX_NOUN_DISTANCE
            and self._may_describe(before)
            and not self._opens_clause(before + 1)
        ):
            before -= 1
        if self._word_at(before) in self._words.articles and not self._opens_clause(before + 1):
            before -= 1
        elif self._language.capitals != "nouns" or not row[0].is_capitalized:
            return False
        return any(self._matches_sequence(before, said) for said in self._words.am)

    def _may_describe(self, place: int) -> bool:
        """Return True if the word can occur between an article and an occupation."""
        word = self._word_at(place)
        no_more = self._language.stop | self._language.counting_words
        return word in self._words.sole or (bool(word) and not word.isdigit() and word not in no_more)

    def _matches_sequence(self, place: int, words: Sequence[str]) -> bool:
        """Return True if the word sequence ends at a row, in one clause with its successor."""
        first = place - len(words) + 1
        found = tuple(self._word_at(at) for at in range(first, place + 1))
        inner = range(first + 1, place + 2)
        return first >= 0 and found == tuple(words) and not any(self._opens_clause(at) for at in inner)

    def _find_verb(self, place: int) -> int | None:
        """Return the row of a verb of persons, if only connecting words separate it from a row."""
        words, is_being = self._words, False
        doing = words.acts | words.sayings | words.wishes
        fitting = words.between | words.negations | self._language.auxiliaries
        for at in range(place, place + _MAX_VERB_DISTANCE):
            word = self._word_at(at)
            if not word or self._opens_clause(at):
                return None
            if word in words.be:
                is_being = True
            elif word in (words.states if is_being else doing):
                return at if word not in words.wishes or not self._is_negated(place, at) else None
            elif word not in fitting:
                return None
        return None

    def _is_negated(self, place: int, verb: int) -> bool:
        """Return True if a negation is between the subject and the word after the verb."""
        return not self._words.negations.isdisjoint(self._words_between(place, verb + 2))

    def _is_inverted(self, verb: int, *, is_relative: bool) -> bool:
        """Return True if the subject may follow the verb; then the words before the verb are its object."""
        telling = self._words.inverted | (self._language.determiners if is_relative else frozenset())
        return self._word_at(verb + 1) in telling and not self._opens_clause(verb + 1)

    def _has_second_verb(self, verb: int) -> bool:
        """Return True if another verb of persons follows: "refuses to speak"."""
        for at in range(verb + 1, verb + 1 + _MAX_VERB_CONTEXT):
            word = self._word_at(at)
            if not word or self._opens_clause(at):
                return False
            if word in self._words.acts | self._words.sayings:
                return True
            if word not in self._words.links | self._words.between:
                return False
        return False

    def _find_subject(self, place: int) -> tuple[int, int] | None:
        """Return the row of the subject noun, from its last row: in "the a of the b", the first noun."""
        before = self._words.joins | self._words.acts | self._words.sayings
        while True:
            start = self._find_start(place)
            left = self._word_at(start - 1)
            if self._opens_clause(start) or left in before:
                return place, self._group_size(start, place)
            whole = start - 2
            if whole < 0 or left not in self._words.links or self._opens_clause(start - 1):
                return None
            if not self._names[whole]:
                # "two of the a": two persons.
                is_counted = self._word_at(whole) in self._counts and self._opens_clause(whole)
                return (place, self._group_size(whole, place)) if is_counted else None
            place = whole

    def _find_start(self, place: int) -> int:
        """Return the first row of the noun phrase that ends at a row."""
        start, at = place, place - 1
        while at >= 0 and not self._opens_clause(at + 1):
            word = self._word_at(at)
            if word in self._words.owning and at > 0 and self._names[at - 1] and not self._opens_clause(at):
                place = start = at = at - 1
            elif word in self._language.determiners or word in self._counts:
                start = at
            elif not word or word in self._apart or start != place or place - at >= _MAX_NOUN_DISTANCE:
                break
            at -= 1
        return start

    def _group_size(self, start: int, place: int) -> int:
        """Return the number of persons that a row names, from the words before it."""
        counts = [self._counts.get(word, 1) for word in self._words_between(start, place)]
        return max((count for count in counts if count <= _MAX_GROUP_SIZE), default=1)

    def _is_group(self, place: int) -> bool:
        return any(
            word in self._words.parties for word in self._words_between(self._find_start(place), place)
        )

    def _words_between(self, start: int, place: int) -> list[str]:
        return [self._word_at(at) for at in range(start, place)]

    def _opens_clause(self, place: int) -> bool:
        return place >= len(self._rows) or self._rows[place][0].opens_clause

    def _word_at(self, place: int) -> str:
        """Return the word of a row without a name; empty for a row with a name or out of range."""
        inside = 0 <= place < len(self._rows) and not self._names[place]
        return self._rows[place][0].casefolded if inside else ""
