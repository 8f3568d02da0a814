"""Clauses of a sentence: subject, verb, objects and phrases, with polarity, tense and assertion."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from peripety.session.narration.claims.words import words_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.session.narration.claims.words import Ref, Word


@dataclass(slots=True)
class Group:
    """A noun with its determiners, or several joined by and.

    Attributes:
        tokens: its tokens.
        is_negated: True behind `no` or `not`.
        owner: what owns it, as in `Delta's coat`; empty for none.
        of: the group behind `of`, if there is one.
        joined: further groups of a list.
    """

    tokens: list[Word]
    owner: tuple[Ref, ...] = ()
    of: Group | None = None
    joined: list[Group] = field(default_factory=list)
    is_negated: bool = False

    @property
    def head(self) -> Word:
        """The last noun or name."""
        return next(
            (one for one in reversed(self.tokens) if one.tag in {"name", "noun", "pron"}), self.tokens[-1]
        )

    @property
    def word(self) -> str:
        """The head in lower case."""
        return self.head.word

    @property
    def all_words(self) -> set[str]:
        """All words in lower case."""
        return {token.word for token in self.tokens}

    def keys(self, kind: str) -> list[str]:
        """Return the ids of a kind that this group names, with the further groups of a list."""
        own = [key for known, key in self.head.refs if known == kind]
        return [*own, *(key for one in self.joined for key in one.keys(kind))]

    @property
    def places(self) -> list[str]:
        """The places that own or contain this: `the dome of x`, `x's dome`."""
        inside = [key for token in self.tokens[:-1] for kind, key in token.refs if kind == "place"]
        return (
            [key for kind, key in self.owner if kind == "place"]
            + inside
            + ([] if self.of is None else self.of.keys("place"))
        )

    def owned_by(self, kind: str = "entity") -> list[str]:
        """Return the ids of the owners, with `your` as `you`."""
        return [key for known, key in self.owner if known == kind]


@dataclass(slots=True)
class Clause:
    """A verb with what belongs to it.

    Attributes:
        verb: its base, with a particle: `pick-up`; empty for a sentence without a verb.
        senses: the classes of its senses.
        form: its form; of the first auxiliary, if there is one.
        subject: its subject; None if there is none.
        objects: groups behind the verb without a preposition.
        phrases: prepositions with their groups.
        fronted: the same before the subject.
        rest: the tokens behind the verb up to the next clause.
        before: the tokens of the sentence before the clause, up to a break.
        is_negative: True if it is negated.
        is_asserted: True if the narrator asserts it as a fact of the scene.
        is_passive: True for a passive.
        is_perfect: True for have with a participle.
        is_past: True for the past tense.
        is_progressive: True for be with a gerund, or a gerund alone.
        is_infinitive: True for an infinitive or a gerund behind a preposition.
        modal: the modal verb; empty for none.
        governor: the clause on which it depends; None for a main clause.
        subordinator: the word that makes it dependent; empty for none.
        copied_subject: True if the subject is that of an earlier clause.
    """

    verb: str
    senses: frozenset[str]
    form: str
    subject: Group | None
    start: int
    end: int
    objects: list[Group] = field(default_factory=list)
    phrases: list[tuple[str, Group]] = field(default_factory=list)
    fronted: list[tuple[str, Group]] = field(default_factory=list)
    rest: list[Word] = field(default_factory=list)
    adverbs: set[str] = field(default_factory=set)
    is_negative: bool = False
    is_asserted: bool = True
    is_passive: bool = False
    is_perfect: bool = False
    is_past: bool = False
    is_progressive: bool = False
    is_infinitive: bool = False
    modal: str = ""
    governor: Clause | None = None
    subordinator: str = ""
    copied_subject: bool = False
    is_fronted: bool = False
    part: int = 0
    span: tuple[int, int] = (0, 0)
    verb_start: int = 0

    @property
    def base(self) -> str:
        """The verb without a particle."""
        return self.verb.partition("-")[0]

    def is_a(self, *classes: str) -> bool:
        """Return True if the verb belongs to one of some classes of `vocabulary.toml`."""
        return any(self.verb in words_of("verbs", one) or self._with_particle(one) for one in classes)

    def _with_particle(self, name: str) -> bool:
        known = words_of("verbs", name)
        if "-" in self.verb:
            return (
                self.base in known
                and not {f"{self.base}-{word}" for word in ("up", "down", "off", "out", "away")} & known
            )
        particles = {token.word for token in self.rest[:4] if token.tag in {"prep", "adv"}}
        return any(f"{self.verb}-{word}" in known for word in particles)

    def is_now(self, *, is_past: bool) -> bool:
        """Return True if this is asserted in the tense of the story.

        Args:
            is_past: True if that tense is the past.
        """
        if is_past:
            return self.is_asserted and not (self.is_perfect and self.is_past)
        return self.is_asserted and not self.is_past

    @property
    def rest_words(self) -> list[str]:
        """The words behind the verb."""
        return [token.word for token in self.rest]

    @property
    def where(self) -> list[tuple[str, Group]]:
        """The phrases before and behind the verb."""
        return [*self.fronted, *self.phrases]

    def subjects(self, kind: str = "entity") -> list[str]:
        """Return the ids of a kind that the subject names."""
        return [] if self.subject is None else self.subject.keys(kind)

    def groups(self) -> Iterator[Group]:
        """Yield the subject, the objects and the groups of phrases."""
        if self.subject is not None:
            yield self.subject
        yield from self.objects
        yield from (group for _, group in self.phrases)


@dataclass(slots=True)
class Sentence:
    """A sentence as tokens and clauses.

    Attributes:
        text: the sentence, without speech.
        tokens: its tokens.
        clauses: its clauses, in order.
        parts: its tokens up to each break.
        groups: all its groups, with the preposition before each.
        is_unreal: True if it is about a dream, a memory, another time.
        attributed: the end of its words that are attributed to a person, as in `All is lost, Delta says`.
    """

    text: str
    tokens: list[Word]
    clauses: list[Clause]
    groups: list[tuple[str, Group]]
    is_unreal: bool
    attributed: int = 0

    def named(self, kind: str) -> list[str]:
        """Return the ids of a kind that the sentence names, in order."""
        return list(dict.fromkeys(key for token in self.tokens for known, key in token.refs if known == kind))
