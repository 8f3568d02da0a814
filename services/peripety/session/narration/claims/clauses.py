"""Groups of words and clauses: subject, verb, objects and phrases, with polarity, tense and assertion."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from peripety.session.narration.claims.english import ProseWord, words, words_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peripety.session.narration.claims.english import Ref


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

    tokens: list[ProseWord]
    owner: tuple[Ref, ...] = ()
    of: Group | None = None
    joined: list[Group] = field(default_factory=list)
    is_negated: bool = False

    @property
    def head(self) -> ProseWord:
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
class ProseClause:
    """A verb with what belongs to it.

    Attributes:
        verb: its base, with a particle: `pick-up`; empty for a sentence without a verb.
        senses: the classes of its senses.
        form: its form; of the first auxiliary, if there is one.
        subject: its subject; None without one.
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
        has_any_tense: True for `you put`, whose past looks like its present.
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
    rest: list[ProseWord] = field(default_factory=list)
    adverbs: set[str] = field(default_factory=set)
    is_negative: bool = False
    is_asserted: bool = True
    is_passive: bool = False
    is_perfect: bool = False
    is_past: bool = False
    is_progressive: bool = False
    has_any_tense: bool = False
    is_infinitive: bool = False
    modal: str = ""
    governor: ProseClause | None = None
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
    tokens: list[ProseWord]
    clauses: list[ProseClause]
    groups: list[tuple[str, Group]]
    is_unreal: bool
    attributed: int = 0

    @property
    def refs(self) -> set[Ref]:
        """All that the sentence names."""
        return {ref for token in self.tokens for ref in token.refs}

    def named(self, kind: str) -> list[str]:
        """Return the ids of a kind that the sentence names, in order."""
        return list(dict.fromkeys(key for token in self.tokens for known, key in token.refs if known == kind))


_GROUP_TAGS = words("det poss num adj noun name pron own")


def read_groups(tokens: Sequence[ProseWord]) -> tuple[list[ProseWord | Group], list[tuple[str, Group]]]:
    """Return the tokens with those of groups joined, and the groups with the prepositions before them."""
    items: list[ProseWord | Group] = []
    current: list[ProseWord] = []
    negated = False

    def close() -> None:
        if current:
            items.append(_make_group(current, is_negated=negated))
            current.clear()

    for token in tokens:
        if token.tag not in _GROUP_TAGS or (current and _begins_group(current, token)):
            close()
        if token.tag in _GROUP_TAGS:
            if not current:
                before = items[-1] if items else None
                negated = (
                    isinstance(before, ProseWord)
                    and before.tag == "neg"
                    and before.word in words("no not neither nor")
                )
            current.append(token)
        else:
            items.append(token)
    close()
    joined, groups = _join(items), []
    preposition = ""
    for item in joined:
        if isinstance(item, Group):
            groups.append((preposition, item))
            groups += [("of", item.of)] if item.of is not None else []
        preposition = item.word if isinstance(item, ProseWord) and item.tag in {"prep", "to"} else ""
    return joined, groups


def _join(items: Sequence[ProseWord | Group]) -> list[ProseWord | Group]:
    """Join groups with `of`, and lists of groups with `and`."""
    out: list[ProseWord | Group] = []
    place = 0
    while place < len(items):
        item = items[place]
        after = items[place + 1] if place + 1 < len(items) else None
        is_of = isinstance(item, ProseWord) and item.word == "of"
        if is_of and isinstance(after, Group) and out and isinstance(out[-1], Group):
            last = out[-1]
            while last.of is not None:
                last = last.of
            last.of = after
            place += 2
            continue
        out.append(item)
        place += 1
    result: list[ProseWord | Group] = []
    place = 0
    while place < len(out):
        item = out[place]
        after = out[place + 1] if place + 1 < len(out) else None
        is_and = isinstance(item, ProseWord) and item.word == "and"
        if (
            is_and
            and isinstance(after, Group)
            and result
            and isinstance(result[-1], Group)
            and _is_list(result, out, place)
        ):
            result[-1].joined.append(after)
            place += 2
            continue
        result.append(item)
        place += 1
    return result


def _is_list(result: Sequence[ProseWord | Group], out: Sequence[ProseWord | Group], place: int) -> bool:
    """Return True if `and` joins two groups, and not two clauses."""
    following = out[place + 2] if place + 2 < len(out) else None
    second = out[place + 1]
    if isinstance(second, Group) and second.word in words("he she they") and result[-1:] and not second.owner:
        # `after x and she comes`: a pronoun in this case begins a clause.
        return False
    is_verb = isinstance(following, ProseWord) and (following.tag in words("verb be have do modal adv neg"))
    before = result[-2] if len(result) > 1 else None
    starts = before is None or (
        isinstance(before, ProseWord) and before.tag in words("break comma speech sub conj adv")
    )
    # `You take x and y nods` has a verb before the first group; `x and y nod` does not.
    return starts if is_verb else True


def _begins_group(current: Sequence[ProseWord], token: ProseWord) -> bool:
    """Return True if a token begins a group of its own behind others."""
    last = current[-1]
    if token.tag == "pron":
        return True
    if last.tag == "pron":
        return token.tag != "own"
    if token.tag in {"det", "poss"}:
        return last.tag != "det" and not (last.tag == "num" and token.tag == "poss")
    if token.tag == "own":
        return False
    if token.tag == "adj":
        return last.tag in {"noun", "name"}
    if token.tag == "num":
        return last.tag in {"noun", "name"}
    if token.tag == "name" and last.tag == "name":
        return True
    if token.tag == "noun" and last.tag == "name" and any(kind == "entity" for kind, _ in last.refs):
        return True
    if token.tag == "name" and last.word in words_of("words", "body") | words_of("words", "holder"):
        return True
    return token.tag == "noun" and last.tag == "name" and False


def _make_group(tokens: Sequence[ProseWord], *, is_negated: bool) -> Group:
    owner: tuple[Ref, ...] = ()
    start = 0
    for place, token in enumerate(tokens):
        if token.tag == "own" and place:
            owner, start = tokens[place - 1].refs or (("other", tokens[place - 1].word),), place + 1
        elif token.tag == "poss":
            owner = token.refs or (("other", token.word),)
    kept = list(tokens[start:]) or list(tokens)
    return Group(kept, owner, is_negated=is_negated)


_PERSONS = words("he she him her his himself herself")
_FIRST = words("i me my we us our myself ourselves")
_SECOND = words("you your yourself yours")
_THINGS = words("it them they its which")


def resolve_pronouns(
    tokens: Sequence[ProseWord],
    you: str,
    context: Sequence[ProseWord] = (),
    *,
    is_third: bool = False,
    is_strict: bool = False,
) -> None:
    """Let pronouns name what they stand for, if only one person or thing can be meant.

    Args:
        tokens: the tokens of a sentence.
        you: the id of the player.
        context: the tokens of the sentence before.
        is_third: True if the story speaks of the player in the third person.
        is_strict: True if the sentence before decides only who `he` and `she` are, not `his`, and no amounts.
    """
    people = list(
        dict.fromkeys(
            key
            for token in context
            for kind, key in token.refs
            if kind == "entity" and (key != you or is_third)
        )
    )
    things = next(
        (
            token.refs
            for token in reversed(context)
            if any(kind in {"thing", "quantity", "object"} for kind, _ in token.refs)
        ),
        (),
    )
    if is_strict:
        things = tuple(one for one in things if one[0] != "quantity")
    has_own, is_open = False, bool(people)
    named = {key for token in tokens for kind, key in token.refs if kind == "entity" and key != you}
    # `With the token in her hand Delta …`
    ahead = [*named] if not people and not is_third and len(named) == 1 else []
    for token in tokens:
        if token.tag in {"pron", "poss"}:
            if token.word in _SECOND or token.word in _FIRST:
                token.refs = (("entity", you),)
            elif token.word in _PERSONS and ahead and not people:
                token.refs = (("entity", ahead[0]),) if token.tag == "poss" else ()
            elif (
                token.word in _PERSONS
                and len(people) == 1
                and not (is_strict and token.tag == "poss" and is_open and not has_own and people[0] != you)
                and (
                    not is_third
                    or token.word in {"him", "himself"}
                    or (token.tag == "pron" and token.word == "her")
                    or people[0] == you
                )
            ):
                token.refs = (("entity", people[0]),)
            elif (token.word in _PERSONS and not people and is_third) or (
                token.word in {"they", "them", "their"} and is_third and not things
            ):
                token.refs = (("entity", you),)
            elif token.word in _THINGS:
                token.refs = tuple(one for one in things if one[0] in {"thing", "quantity", "object"})
            continue
        for kind, key in token.refs:
            if kind == "entity" and (key != you or is_third):
                people = [*(people if has_own else ()), *([] if key in people and has_own else [key])]
                has_own = True
            elif kind in {"thing", "quantity", "object"}:
                things = token.refs
