"""Subjects and objects of a sentence: the calls and the callers that nouns and pronouns stand for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from peripety.author.policy_author.clauses import Derivation
from peripety.author.policy_author.formulas import (
    APPROVAL,
    all_of,
    any_of,
    has_leaf,
    negate,
    replace_leaves,
)
from peripety.author.policy_author.meaning import (
    AGENTS,
    CALLERS,
    IRRELEVANT,
    OBJECT_PRONOUNS,
    CallGroup,
    ClauseMeaning,
    NotFollowedError,
    Phrase,
    iter_phrases,
    join_text,
)
from peripety.author.policy_author.phrases import (
    check_values,
    read_posts,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.author.policy_author.formulas import Formula
    from peripety.author.policy_author.tokens import WordToken


def first_part(node: Derivation, rule: str) -> Derivation:
    """Return the first child of a rule."""
    return node.find(rule)[0]


def items_of(phrase: Derivation) -> tuple[Derivation, ...]:
    """Return the verbs of a phrase with their objects.

    Raises:
        NotFollowedError: a value in a list of values became an object of its own.
    """
    items = phrase.find("item")
    for place, token in enumerate(phrase):
        if isinstance(token, Derivation) or token.kind != "TO":
            continue
        verb = phrase.children[place + 1]
        if not isinstance(verb, Derivation) or verb.tokens[0].kind != "WORD":
            # "Sent or to a"
            raise NotFollowedError(join_text(phrase.tokens))
    check_values([one.tokens for one in items])
    return items


def read_groups(phrase: Derivation, before: ClauseMeaning | None) -> tuple[CallGroup, ...]:
    """Return the calls of verbs with their objects; a pronoun among them refers to an object before."""
    groups: list[CallGroup] = []
    for item in items_of(phrase):
        group = resolve_pronoun(item.tokens, groups, before)
        groups.append(group)
    return tuple(groups)


def resolve_pronoun(
    tokens: tuple[WordToken, ...], groups: Sequence[CallGroup], before: ClauseMeaning | None
) -> CallGroup:
    """Return the calls of a verb with its object; "it" and "them" refer to an object in front of them."""
    if not tokens or tokens[-1].kind != "PRONOUN" or tokens[-1].text.casefold() not in OBJECT_PRONOUNS:
        return CallGroup(tokens)
    if groups:
        if len(groups) > 1:
            raise NotFollowedError(join_text(tokens))
        return CallGroup(tokens[:-1], groups[0].condition, antecedent=groups[0].tokens)
    if before is None:
        raise NotFollowedError(join_text(tokens))
    found = before.subjects or before.groups
    is_plain = before.exception is False and before.focus is None and before.required is True
    condition = all_of(before.condition, *(one.condition for one in found))
    if len(found) != 1 or not is_plain or not _is_about_objects(condition):
        raise NotFollowedError(join_text(tokens))
    return CallGroup(tokens[:-1], condition, antecedent=found[0].tokens)


def _is_about_objects(condition: Formula) -> bool:
    """Return True if a condition has no approval and no caller: a pronoun may stand for its objects."""
    phrases = [*iter_phrases(condition)]
    return all(one.preposition != "BY" for one in phrases) and not has_leaf(condition, APPROVAL)


def read_objects(
    subject: Derivation, before: ClauseMeaning | None
) -> tuple[tuple[CallGroup, ...], bool, bool]:
    """Return the calls that a subject describes, whether it is negative, and whether it has "only"."""
    groups: list[CallGroup] = []
    is_negative = is_only = False
    parts = subject.find("part")
    check_values([one.tokens for one in parts])
    for number, part in enumerate(parts):
        is_only = is_only or part.has("ONLY")
        item = part.find("item")[0]
        tokens = item.tokens
        if [one.kind for one in tokens] == ["PRONOUN"]:
            if before is None or len(parts) > 1 or part.find("pp", "relative", "except_post"):
                raise NotFollowedError(join_text(tokens))
            if not before.subjects:
                raise NotFollowedError(join_text(tokens))
            return before.subjects, False, is_only
        if any(one.kind in {"NO", "NOTHING"} for one in tokens):
            if number:
                raise NotFollowedError(join_text(tokens))
            is_negative = True
            tokens = tuple(replace(one, kind="QUANTIFIER") if one.kind == "NO" else one for one in tokens)
        groups.append(_read_object(part, tokens, groups, before))
    if is_only and len(parts) > 1:
        raise NotFollowedError(join_text(subject.tokens))
    return _share_condition(groups), is_negative, is_only


def _read_object(
    part: Derivation,
    tokens: tuple[WordToken, ...],
    groups: Sequence[CallGroup],
    before: ClauseMeaning | None,
) -> CallGroup:
    if tokens[-1].kind == "PRONOUN":
        # "Deleting them"
        if part.parts[1:]:
            raise NotFollowedError(join_text(part.tokens))
        return resolve_pronoun(tokens, groups, before)
    # "No items other than `a`": the value is one of the last noun.
    noun = Phrase("", tokens[-1:]) if tokens[-1].kind == "WORD" else None
    posts = read_posts(part.parts[1:], noun)
    if posts.focus is not None:
        raise NotFollowedError(join_text(part.tokens))
    return CallGroup(tokens, all_of(posts.condition, negate(posts.exception)))


def _share_condition(groups: Sequence[CallGroup]) -> tuple[CallGroup, ...]:
    """Apply the condition behind the last object to the objects before it: "files and folders below /a"."""
    last = groups[-1].condition
    if all(one.condition is True for one in groups[:-1]):
        return tuple(replace(one, condition=last) for one in groups)
    if any(one.condition is True for one in groups):
        raise NotFollowedError(join_text(token for one in groups for token in one.tokens))
    return tuple(groups)


def read_callers(subject: Derivation) -> tuple[Formula, bool, bool]:
    """Return the condition on the caller, whether the subject is negative, and whether it has "only"."""
    parts = subject.find("part")
    if len(parts) == 1:
        condition, is_negative = _read_caller(parts[0])
        return condition, is_negative, parts[0].has("ONLY")
    read = [_read_caller(one) for one in parts]
    is_only = parts[0].has("ONLY")
    if any(one.has("ONLY") for one in parts[1:]) or any(
        is_negative
        or not isinstance(condition, Phrase)
        or sum(one.kind == "WORD" for one in condition.tokens) > 1
        for condition, is_negative in read
    ):
        # "Half guests and managers": the word in front may have another meaning.
        raise NotFollowedError(join_text(subject.tokens))
    return any_of(*(condition for condition, _ in read)), False, is_only


def _read_caller(part: Derivation) -> tuple[Formula, bool]:
    tokens = part.find("item")[0].tokens
    is_negative = any(one.kind in {"NO", "NOONE"} for one in tokens)
    posts = read_posts(part.parts[1:], Phrase("BY", tokens))
    if posts.focus is not None:
        raise NotFollowedError(join_text(part.tokens))
    words = [one for one in tokens if one.kind not in {*IRRELEVANT, "NO"}]
    condition = all_of(posts.condition, negate(posts.exception))
    if len(words) == 1 and condition is True:
        (word,) = words
        is_all = any(one.kind in {"QUANTIFIER", "NO"} for one in tokens)
        text = word.text.casefold()
        is_agent = word.kind == "PRONOUN" and text not in {"they", "them"}
        if is_agent or word.kind in {"EVERYONE", "NOONE"} or text in AGENTS or (text in CALLERS and is_all):
            return True, is_negative
        if word.kind == "PRONOUN":
            # "They may read items": the callers are not known.
            raise NotFollowedError(join_text(tokens))
    kinds = {one.kind for one in words}
    if kinds in ({"EVERYONE"}, {"NOONE"}) and condition is not True:
        return replace_leaves(condition, _to_caller), is_negative
    if kinds & {"NOONE", "PRONOUN", "ELSE", "POSSESSIVE"}:
        raise NotFollowedError(join_text(tokens))
    if kinds == {"WORD"} and {one.text.casefold() for one in words} <= CALLERS and condition is not True:
        return replace_leaves(condition, _to_caller), is_negative
    if "WORD" in kinds and kinds <= {"WORD", "NAME"} and condition is True:
        return Phrase("BY", tuple(one for one in tokens if one.kind != "NO")), is_negative
    raise NotFollowedError(join_text(part.tokens))


def _to_caller(leaf: Formula) -> Formula:
    """Return a phrase behind a subject as one about the caller: "anyone who is an admin"."""
    if not isinstance(leaf, Phrase) or leaf.preposition not in {"", "WITH"}:
        return leaf
    return replace(leaf, preposition="BY", is_test=True)
