"""Phrases of a sentence: the words behind a verb, conditions, exceptions and approvals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from peripety.author.policy_author.clauses import Derivation
from peripety.author.policy_author.formulas import (
    APPROVAL,
    all_of,
    any_of,
    negate,
)
from peripety.author.policy_author.meaning import (
    CALLERS,
    IRRELEVANT,
    VALUES,
    NotFollowedError,
    Phrase,
    join_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from peripety.author.policy_author.formulas import Formula
    from peripety.author.policy_author.tokens import WordToken


_APPROVERS = frozenset(
    {
        "person",
        "human",
        "people",
        "manager",
        "supervisor",
        "operator",
        "user",
        "owner",
        "administrator",
        "prior",
    }
)
_MANY = 2
_RELATED = {"", "BY", "TO", "FROM", "PLACE", "WITH"}


@dataclass(frozen=True, slots=True)
class Posts:
    """Words behind a verb: their condition, their exceptions, and the scope of "only"."""

    condition: Formula = True
    exception: Formula = False
    focus: Formula | None = None
    is_rest: bool = False


def read_posts(parts: Iterable[Derivation], last: Phrase | None = None) -> Posts:
    """Read the words behind a verb, with adjacent phrases merged; `last` is the phrase in front of them."""
    flat: list[Phrase | Posts] = []
    only: list[Phrase] = []
    for part in parts:
        (said, *_) = part.parts or (part,)
        if part.rule == "pp" or (part.rule == "only_post" and said.rule == "pp"):
            last = to_phrase(part if part.rule == "pp" else said)
            flat.append(last)
            # "Only from a to b" limits both places.
            only += [last] if part.rule == "only_post" or only else []
        elif part.rule == "relative" and last in flat:
            _check_relative(part, last, only)
            flat.remove(last)
            flat.append(_read_post(part, last))
        elif part.rule == "else_post":
            only += _phrases_of_else(part, flat, only)
        elif part.rule != "adverb":
            flat.append(_read_post(part, last))
    return _join_posts(flat, only)


def _read_post(part: Derivation, last: Phrase | None) -> Posts:
    """Read a condition or an exception behind a verb."""
    if part.rule == "except_post":
        return Posts(exception=_read_except(part, last))
    if part.rule == "places":
        return Posts(condition=_read_places(part))
    if part.rule == "only_post":
        condition = read_if(part.parts[0])
        return Posts(condition=condition, focus=condition)
    if part.rule not in {"if_post", "relative", "unless_post"}:
        raise NotFollowedError(join_text(part.tokens))
    if part.rule == "unless_post":
        return Posts(exception=read_condition(part.parts[0]))
    return Posts(condition=read_if(part) if part.rule == "if_post" else read_condition(part.parts[0]))


def _phrases_of_else(
    part: Derivation, flat: Iterable[Phrase | Posts], only: Sequence[Phrase]
) -> list[Phrase]:
    """Return the phrases that "to a and to no one else" or "in a and nowhere else" is about."""
    phrases = [one for one in flat if isinstance(one, Phrase)]
    places = {"TO", "FROM", "PLACE"} if part.has("NOWHERE") else set()
    behind = [one for one in phrases if part.has(one.preposition) or one.preposition in places]
    if places:
        behind = behind[:1]
    if not behind or only:
        raise NotFollowedError(join_text(part.tokens))
    return phrases[phrases.index(behind[-1]) :]


def _read_places(part: Derivation) -> Formula:
    """Read "in a or for b", and "below a and below b", which is either of them."""
    phrases = [to_phrase(pp) for pp in part.find("pp")]
    texts = {pp.tokens[0].text.casefold() for pp in part.find("pp")}
    is_and = part.has("AND")
    is_mixed = is_and and part.has("OR")
    if is_mixed or (is_and and (len(texts) > 1 or any(not one.has("VALUE", "NAME") for one in phrases))):
        raise NotFollowedError(join_text(part.tokens))
    return any_of(*(read_phrase(replace(one, is_test=True)) for one in phrases))


def _check_relative(part: Derivation, last: Phrase, only: Sequence[Phrase]) -> None:
    """Check that a relative clause behind a phrase is about callers: "by callers who have the role"."""
    if not _is_callers(last) or last in only:
        raise NotFollowedError(join_text(part.tokens))


def _is_callers(phrase: Phrase) -> bool:
    words = {one.text.casefold() for one in phrase.tokens if one.kind == "WORD"}
    return phrase.preposition == "BY" and bool(words) and words <= CALLERS and not phrase.has_value


def _join_posts(flat: Sequence[Phrase | Posts], only: Sequence[Phrase]) -> Posts:
    phrases = [one for one in flat if isinstance(one, Phrase)]
    others = [one for one in flat if isinstance(one, Posts)]
    is_rest = False
    kept: list[Phrase] = []
    for phrase in phrases:
        kinds = {one.kind for one in phrase.tokens}
        if kept and is_approval(kept[-1]) and names_approver(phrase):
            kept[-1] = Phrase(kept[-1].preposition, (*kept[-1].tokens, *phrase.tokens))
            continue
        if kinds == {"SAME"} or (kinds == {"EVERYONE", "ELSE"} and phrase not in only):
            is_rest = True
        else:
            kept.append(phrase)
    merged = merge_phrases(kept)
    said_only = (
        [one for one in merged if any(set(mark.tokens) <= set(one.tokens) for mark in only)] if only else []
    )
    focuses = [one.focus for one in others if one.focus is not None]
    return Posts(
        all_of(*map(read_phrase, merged), *(one.condition for one in others)),
        any_of(*(one.exception for one in others)),
        all_of(*map(read_phrase, said_only), *focuses) if said_only or focuses else None,
        is_rest,
    )


def _read_except(part: Derivation, last: Phrase | None) -> Formula:
    said, *others = part.parts
    phrases = [to_phrase(one) for one in others]
    if said.rule == "pp":
        first = to_phrase(said)
    else:
        is_related = last is not None and last.preposition in _RELATED and not last.has("APPROVE", "ASK")
        before = last if is_related else None
        words = () if before is None or before.has_value else before.tokens
        hint = tuple(one for one in words if one.kind == "WORD")
        first = Phrase("" if before is None else before.preposition, (*hint, *said.tokens))
    merged = [replace(one, is_test=True) for one in merge_phrases([first, *phrases])]
    if any(one.has("ELSE", "POSSESSIVE", "PRONOUN") for one in merged):
        raise NotFollowedError(join_text(part.tokens))
    return all_of(*map(read_phrase, merged))


def merge_phrases(phrases: Sequence[Phrase]) -> list[Phrase]:
    """Join a phrase without a value to the phrase with its value: "to recipients at a.test"."""
    merged: list[Phrase] = []
    for phrase in phrases:
        before = merged[-1] if merged else None
        if before is not None and _is_callers(before) and phrase.preposition == "WITH" and phrase.has("NAME"):
            merged[-1] = Phrase("BY", (*before.tokens, *phrase.tokens))
        elif (
            before is not None
            and before.has("WORD")
            and not before.has_value
            and not before.has("APPROVE", "ASK", "ELSE", "SAME")
            and before.preposition not in {"BY", "WITHOUT", "AFTER"}
            and phrase.preposition in {"PLACE", "OUTSIDE"}
            and phrase.has("VALUE", "BOUND", "NAME")
        ):
            preposition = before.preposition if phrase.preposition == "PLACE" else "OUTSIDE"
            merged[-1] = Phrase(preposition, (*before.tokens, *phrase.tokens), phrase.is_test)
        else:
            merged.append(phrase)
    return merged


def to_phrase(pp: Derivation) -> Phrase:
    """Return the phrase of a preposition with its objects."""
    check_values([one.tokens for one in pp.find("item")])
    preposition, *tokens = pp.tokens
    if preposition.kind == "SUBJECT_TO":
        # "Subject to approval" is "with approval".
        if preposition.text.casefold() == "up to" or not any(one.kind == "APPROVE" for one in tokens):
            raise NotFollowedError(join_text(pp.tokens))
        return Phrase("WITH", tuple(tokens))
    if preposition.text.casefold() == "within" and any(one.kind == "NUMBER" for one in tokens):
        # "Within 5 days" is about the time of a call.
        raise NotFollowedError(join_text(pp.tokens))
    return Phrase(preposition.kind, tuple(tokens))


def read_phrase(phrase: Phrase) -> Formula:
    """Return the formula of a phrase: an approval, its complement, or the phrase itself."""
    if phrase.has("APPROVE", "ASK") and phrase.preposition in {"WITHOUT", "WITH", "AFTER"}:
        kinds = {"APPROVE", "ASK", "WORD", "EVERYONE", *IRRELEVANT}
        words = {one.text.casefold() for one in phrase.tokens if one.kind == "WORD"}
        if any(one.kind not in kinds for one in phrase.tokens) or (
            phrase.preposition == "WITHOUT" and not words <= _APPROVERS
        ):
            raise NotFollowedError(phrase.text)
        return negate(APPROVAL) if phrase.preposition == "WITHOUT" else APPROVAL
    if phrase.preposition == "AFTER":
        raise NotFollowedError(phrase.text)
    if phrase.preposition == "WITHOUT":
        # "Without force": a flag that is not set.
        return negate(Phrase("WITH", phrase.tokens, is_test=True))
    if phrase.preposition == "OUTSIDE":
        return negate(Phrase("PLACE", phrase.tokens, is_test=True))
    return phrase


def is_approval(phrase: Phrase) -> bool:
    """Return True for "with approval", "after approval" and "without approval"."""
    return phrase.has("APPROVE", "ASK") and phrase.preposition in {"WITH", "AFTER", "WITHOUT"}


def names_approver(phrase: Phrase) -> bool:
    """Return True for the person who approves: "by a manager", "from a person"."""
    words = [one.text.casefold() for one in phrase.tokens if one.kind == "WORD"]
    return (
        _is_person(words)
        and phrase.preposition in {"BY", "PLACE", "FROM"}
        and not phrase.has_value
        and not phrase.has("ELSE")
    )


def _is_person(words: Sequence[str]) -> bool:
    """Return False for "of low priority": an approver is one noun, or ends with a known one."""
    return len(words) < _MANY or words[-1] in _APPROVERS


def read_if(part: Derivation) -> Formula:
    """Return the formula of the condition behind "if".

    Raises:
        NotFollowedError: it has neither a subject nor a verb, as in "if by callers": a word may be missing.
    """
    (condition,) = part.parts
    for simple in condition.parts:
        first = simple.tokens[0]
        if simple.rule == "named" and (first.kind in {"BY", "WITH"} or first.text.casefold() == "for"):
            raise NotFollowedError(join_text(part.tokens).strip(", "))
    return read_condition(condition)


def read_condition(condition: Derivation) -> Formula:
    """Return the formula of a condition."""
    parts = [_read_simple(one) for one in _join_values(condition)]
    return any_of(*parts) if condition.rule == "any_of" else all_of(*parts)


def _join_values(condition: Derivation) -> Sequence[Derivation]:
    """Return the simple conditions; "low or normal" behind "their priority is" belongs to one of them."""
    first, *others = condition.parts
    is_words = all(
        one.rule == "named" and [part.rule for part in one.parts] == ["item"] and len(one.tokens) == 1
        for one in others
    )
    last = first.parts[-1] if first.parts else first
    if condition.rule != "any_of" or not is_words or first.rule != "stated" or last.rule != "item":
        return condition.parts
    tokens = tuple(one for one in condition.children if not isinstance(one, Derivation))
    values = tuple(value for pair in zip(tokens, others, strict=True) for value in (pair[0], *pair[1].tokens))
    joined = Derivation("item", (*last.children, *values))
    return [Derivation("stated", tuple(joined if one is last else one for one in first.children))]


def _read_simple(simple: Derivation) -> Formula:
    if any(one.kind in {"APPROVE", "ASK"} for one in simple.tokens):
        if simple.has("NOT") or any(one.kind in VALUES for one in simple.tokens):
            # "The permission is `a`" is not an approval.
            raise NotFollowedError(join_text(simple.tokens))
        return APPROVAL
    subject: tuple[WordToken, ...] = ()
    parts = simple.parts
    if simple.rule == "stated" and parts[0].rule == "np":
        subject = read_condition_subject(parts[0])
        parts = parts[1:]
    phrases = [Phrase("", one.tokens) if one.rule == "item" else to_phrase(one) for one in parts]
    if simple.rule == "named" and not phrases[0].preposition:
        # "Their size exceeds 5"
        phrases[0] = Phrase("", _without_possessive(phrases[0].tokens))
    merged = merge_phrases(phrases)
    if simple.rule == "named" and not all(one.has_value for one in merged):
        raise NotFollowedError(join_text(simple.tokens))
    said = [read_phrase(Phrase(one.preposition, (*subject, *one.tokens), is_test=True)) for one in merged]
    return negate(all_of(*said)) if simple.has("NOT") else all_of(*said)


def read_condition_subject(subject: Derivation) -> tuple[WordToken, ...]:
    """Return the words of the subject of a condition that name an argument or the caller."""
    parts = subject.find("part")
    tokens = parts[0].find("item")[0].tokens
    if len(parts) > 1 or parts[0].has("ONLY") or parts[0].find("relative", "except_post"):
        raise NotFollowedError(join_text(subject.tokens))
    for pp in parts[0].find("pp"):
        # "The number of copies"
        if pp.tokens[0].text.casefold() != "of":
            raise NotFollowedError(join_text(subject.tokens))
        tokens = (*tokens, *pp.tokens[1:])
    if any(one.kind not in {"WORD", "PRONOUN", "POSSESSIVE", *IRRELEVANT} for one in tokens):
        raise NotFollowedError(join_text(subject.tokens))
    if len(tokens) > 1 and any(one.kind == "PRONOUN" for one in tokens):
        raise NotFollowedError(join_text(subject.tokens))
    tokens = _without_possessive(tokens)
    if any(one.kind == "POSSESSIVE" for one in tokens):
        raise NotFollowedError(join_text(subject.tokens))
    return tuple(one for one in tokens if one.kind == "WORD" and one.text.casefold() != "there")


def _without_possessive(tokens: tuple[WordToken, ...]) -> tuple[WordToken, ...]:
    """Return the tokens without a possessive in front of a word: "their size"."""
    if [one.kind for one in tokens[:2]] == ["POSSESSIVE", "WORD"]:
        return tokens[1:]
    return tokens


def check_values(items: Sequence[tuple[WordToken, ...]]) -> None:
    """Raise NotFollowedError if a value in a list of values became an object of its own."""
    for before, tokens in pairwise(items):
        words = [one for one in tokens if one.kind not in {*IRRELEVANT, "EITHER"}]
        if before[-1].kind in VALUES and words and words[0].kind in VALUES:
            raise NotFollowedError(join_text(tokens))
