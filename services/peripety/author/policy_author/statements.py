"""Statements of a sentence: the meaning of each clause of a derivation."""

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
)
from peripety.author.policy_author.meaning import (
    CALLERS,
    EMBEDDED,
    IRRELEVANT,
    OBJECT_PRONOUNS,
    VALUES,
    CallGroup,
    ClauseMeaning,
    Effect,
    NotFollowedError,
    Phrase,
    join_text,
)
from peripety.author.policy_author.phrases import (
    Posts,
    merge_phrases,
    names_approver,
    read_condition,
    read_condition_subject,
    read_if,
    read_phrase,
    read_posts,
    to_phrase,
)
from peripety.author.policy_author.subjects import (
    first_part,
    items_of,
    read_callers,
    read_groups,
    read_objects,
)
from peripety.author.policy_author.tokens import NumericBound, to_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.author.policy_author.formulas import Formula


_LINKING = frozenset(
    {
        *("return", "returns", "have", "stay", "remain", "be", "contain", "use", "give"),
        *("last", "take", "cost", "include", "run"),
    }
)
_EVERYTHING = frozenset({"tool", "tools", "call", "calls", "request", "requests", "action", "actions"})
_EFFECTS = {
    "permit": Effect.PERMIT,
    "permit_only": Effect.PERMIT,
    "forbid": Effect.FORBID,
    "require": Effect.REQUIRE,
    "require_only": Effect.REQUIRE,
}


def read_meaning(sentence: Derivation, previous: ClauseMeaning | None = None) -> list[ClauseMeaning]:
    """Return the meaning of each clause of a derivation.

    Args:
        sentence: the derivation of the sentence.
        previous: the last clause before it in the same sentence, for pronouns.

    Raises:
        NotFollowedError: a part has no meaning.
    """
    found: list[ClauseMeaning] = []
    fronts: Sequence[Derivation] = ()
    for part in sentence.find(
        "clause",
        "tail",
        "tail_passive",
        "tail_active",
        "tail_required",
        "tail_phrase",
        "tail_not",
        "tail_only",
    ):
        before = found[-1] if found else previous
        if part.rule == "clause":
            own = part.parts[:-1]
            found.append(_read_clause(part, before))
        elif not found:
            raise NotFollowedError(join_text(part.tokens))
        elif part.rule in {"tail_not", "tail_only"} or _is_bound_tail(part):
            found[-1] = _narrow_clause(part, found[-1], found)
            continue
        else:
            own = ()
            found.append(_read_tail(part, found[-1]))
        if len(found) > 1 and _is_shared_condition(sentence, part, found[-2], found[-1]):
            raise NotFollowedError(join_text(part.tokens))
        if not own and found[-1].effect is Effect.PERMIT:
            # "With approval, items may be read and items may be moved"
            found[-1] = _apply_fronts(found[-1], fronts)
        fronts = own or fronts
    excluded = [
        ClauseMeaning(Effect.FORBID, one.excluded, condition=one.condition) for one in found if one.excluded
    ]
    return [*excluded, *found]


def _is_shared_condition(
    sentence: Derivation, part: Derivation, before: ClauseMeaning, meaning: ClauseMeaning
) -> bool:
    """Return True if a condition may belong to both clauses: "items may be read and may be moved if"."""
    place = sentence.children.index(part)
    behind = part.parts[-1].parts if part.rule == "clause" else part.parts
    has_comma = any(
        not isinstance(one, Derivation) and one.kind == "COMMA"
        for one in sentence.children[place - 2 : place]
    )
    has_condition = any(one.rule in {"if_post", "unless_post"} for one in behind)
    both = before.effect is Effect.PERMIT and meaning.effect is Effect.PERMIT
    return both and has_condition and not has_comma and not before.has_posts


def _is_bound_tail(part: Derivation) -> bool:
    """Return True for ", but not more than 5 items", which narrows the clause before."""
    return (
        part.rule == "tail_phrase"
        and len(part.parts) == 1
        and len(part.parts[0].find("item")) == 1
        and part.tokens[0].kind == "BOUND"
    )


def _read_clause(clause: Derivation, before: ClauseMeaning | None) -> ClauseMeaning:
    *fronts, statement = clause.parts
    for front in fronts:
        before = before or _front_antecedent(front)
    return _apply_fronts(_STATEMENTS[statement.rule](statement, before), fronts)


def _apply_fronts(meaning: ClauseMeaning, fronts: Sequence[Derivation]) -> ClauseMeaning:
    """Apply the conditions and places in front of a clause."""
    for front in fronts:
        if front.rule == "front_unless":
            said = read_condition(front.parts[0])
            meaning = replace(meaning, exception=any_of(meaning.exception, said))
            continue
        if front.rule == "front_if":
            meaning = replace(meaning, condition=all_of(meaning.condition, read_if(front)))
            continue
        phrases = [to_phrase(pp) for pp in front.parts]
        if not meaning.groups:
            meaning = replace(meaning, groups=(CallGroup(tuple(t for one in phrases for t in one.tokens)),))
        else:
            said = all_of(*map(read_phrase, merge_phrases(phrases)))
            meaning = replace(meaning, condition=all_of(meaning.condition, said))
    return meaning


def _front_antecedent(front: Derivation) -> ClauseMeaning | None:
    """Return the words that a pronoun behind a condition refers to: "if the item is `a`, it may be read"."""
    subjects = [one.parts[0] for condition in front.parts for one in condition.find("stated")]
    if front.rule == "front_place" or len(subjects) != 1 or subjects[0].rule != "np":
        return None
    words = read_condition_subject(subjects[0])
    group = CallGroup(words)
    return ClauseMeaning(Effect.PERMIT, (), subjects=(group,)) if words else None


# ---- Statements


def _read_passive(statement: Derivation, before: ClauseMeaning | None) -> ClauseMeaning:
    subject, modal, phrase = first_part(statement, "np"), statement.parts[1], first_part(statement, "phrase")
    if modal.rule == "forbid" and (duty := _read_limit(statement, before)) is not None:
        # "Sizes must not be more than 5"
        return duty
    groups, is_negative, is_only = read_objects(subject, before)
    verbs = items_of(phrase)
    crossed = tuple(
        replace(group, tokens=(*verb.tokens, *group.tokens)) for group in groups for verb in verbs
    )
    return _apply_posts(
        _with_modal(ClauseMeaning(Effect.PERMIT, crossed, subjects=groups), modal, is_negative=is_negative),
        statement,
        modal,
        is_only_subject=is_only,
    )


def _read_passive_not(statement: Derivation, before: ClauseMeaning | None) -> ClauseMeaning:
    """Read "items must be neither read nor moved"."""
    groups, is_negative, is_only = read_objects(first_part(statement, "np"), before)
    if is_negative or is_only:
        raise NotFollowedError(join_text(statement.tokens))
    crossed = tuple(
        replace(group, tokens=(*verb.tokens, *group.tokens))
        for group in groups
        for verb in items_of(first_part(statement, "phrase"))
    )
    return _apply_posts(ClauseMeaning(Effect.FORBID, crossed, subjects=groups), statement, None)


def _read_passive_never(statement: Derivation, before: ClauseMeaning | None) -> ClauseMeaning:
    """Read "items are never moved"; "items are not moved" may describe them."""
    if not any(one.kind == "NOT" and one.text.casefold() == "never" for one in statement.tokens):
        raise NotFollowedError(join_text(statement.tokens))
    return _read_passive_not(statement, before)


def _read_middle(statement: Derivation, before: ClauseMeaning | None) -> ClauseMeaning:
    """Read an active verb whose subject is its object: "no job may run on Fridays"."""
    phrase = first_part(statement, "phrase")
    if not all(one.kind == "WORD" for one in phrase.tokens):
        raise NotFollowedError(join_text(phrase.tokens))
    return _read_passive(statement, before)


def _read_neither(statement: Derivation, before: ClauseMeaning | None) -> ClauseMeaning:
    """Read "neither guests nor trainees may read items"."""
    callers, is_negative, is_only = read_callers(first_part(statement, "np"))
    if is_negative or is_only or callers is True:
        raise NotFollowedError(join_text(statement.tokens))
    groups = read_groups(first_part(statement, "phrase"), before)
    return _apply_posts(ClauseMeaning(Effect.FORBID, groups, callers=callers), statement, None)


def _read_active(statement: Derivation, before: ClauseMeaning | None) -> ClauseMeaning:
    subject, modal, phrase = first_part(statement, "np"), statement.parts[1], first_part(statement, "phrase")
    if modal.rule == "forbid" and (duty := _read_limit(statement, before)) is not None:
        return duty
    if modal.rule == "permit" and _is_limit(phrase):
        # "Sizes may not exceed 5", "runs may take at most 5 minutes"
        return _read_duty(statement, subject, phrase, before)
    groups = read_groups(phrase, before)
    is_require = modal.rule in {"require", "require_only"}
    if is_require and any(one.kind == "APPROVE" for one in phrase.tokens):
        # "A manager must give permission": the person approves.
        rest = tuple(
            one
            for one in phrase.tokens
            if one.kind not in {"APPROVE", *IRRELEVANT} and one.text.casefold() not in {"give", "grant"}
        )
        meaning = ClauseMeaning(Effect.ESCALATE, (CallGroup(rest),) if rest else ())
        return _apply_posts(meaning, statement, None)
    if is_require:
        return _read_duty(statement, subject, phrase, before)
    if any(one.tokens[:1] and one.tokens[0].kind == "BOUND" for one in groups):
        # "It may more than 5 items"
        raise NotFollowedError(join_text(phrase.tokens))
    callers, is_negative, is_only = read_callers(subject)
    meaning = ClauseMeaning(Effect.PERMIT, groups, callers=callers)
    return _apply_posts(
        _with_modal(meaning, modal, is_negative=is_negative), statement, modal, is_only_subject=is_only
    )


def _read_limit(statement: Derivation, before: ClauseMeaning | None) -> ClauseMeaning | None:
    """Read "sizes must not exceed 5", "runs must not take longer than 5 minutes"; None for other verbs."""
    subject, phrase = first_part(statement, "np"), first_part(statement, "phrase")
    first, *others = phrase.tokens
    is_linked = first.text.casefold() in _LINKING and bool(others) and others[0].kind == "BOUND"
    if len(phrase.find("item")) != 1 or not (first.kind == "BOUND" or is_linked):
        return None
    read = _read_duty(statement, subject, phrase, before)
    return replace(read, required=negate(read.required))


def _is_limit(phrase: Derivation) -> bool:
    """Return True for "not exceed 5" and "last at most 5 days"."""
    first, *others = phrase.tokens
    is_linked = (
        first.text.casefold() in _LINKING
        and bool(others)
        and others[0].kind == "BOUND"
        and all(one.operator in {"<=", "<"} for one in others[0].bounds)
    )
    is_negated = first.kind == "BOUND" and first.text.casefold().startswith("not exceed ")
    return len(phrase.find("item")) == 1 and (is_linked or is_negated)


def _read_duty(
    statement: Derivation, subject: Derivation, phrase: Derivation, before: ClauseMeaning | None
) -> ClauseMeaning:
    """Read "searches must return at most 5 results" and "sizes must not exceed 5"."""
    groups, is_negative, is_only = read_objects(subject, before)
    (item, *others) = phrase.find("item")
    words = [one for one in item.tokens if one.text.casefold() not in _LINKING]
    is_bound = item.tokens[0].kind == "BOUND"
    if is_negative or is_only or others or (len(words) == len(item.tokens) and not is_bound):
        raise NotFollowedError(join_text(phrase.tokens))
    posts = _posts_of(statement)
    read = read_posts(posts)
    if read.focus is not None or any(
        one.rule not in {"unless_post", "except_post", "adverb"} for one in posts
    ):
        raise NotFollowedError(join_text(statement.tokens))
    return ClauseMeaning(
        Effect.REQUIRE,
        groups,
        exception=read.exception,
        required=Phrase("", tuple(words)),
        has_posts=True,
        subjects=groups,
    )


def _read_judged(statement: Derivation, before: ClauseMeaning | None) -> ClauseMeaning:
    subject, verdict = first_part(statement, "np"), statement.parts[1]
    rest, excluded = _split_excluded(statement, subject)
    groups, is_negative, is_only = read_objects(subject, before)
    if excluded and (is_negative or is_only or verdict.rule != "permit"):
        raise NotFollowedError(join_text(statement.tokens))
    meaning = _with_modal(
        ClauseMeaning(Effect.PERMIT, groups, subjects=groups, excluded=excluded),
        verdict,
        is_negative=is_negative,
    )
    return _apply_posts(meaning, rest, verdict, is_only_subject=is_only)


def _read_judged_to(statement: Derivation, before: ClauseMeaning | None) -> ClauseMeaning:
    verdict = statement.parts[0]
    groups = read_groups(first_part(statement, "phrase"), before)
    return _apply_posts(_with_modal(ClauseMeaning(Effect.PERMIT, groups), verdict), statement, verdict)


def _read_banned(statement: Derivation, before: ClauseMeaning | None) -> ClauseMeaning:
    """Read "do not read items", "avoid reading items" and "the assistant should refuse to read items"."""
    callers: Formula = True
    if statement.find("np"):
        callers, is_negative, is_only = read_callers(statement.find("np")[0])
        if is_negative or is_only:
            raise NotFollowedError(join_text(statement.tokens))
    elif before is not None and statement.tokens[0].text.casefold() == "not":
        # "Managers may read items, but not move them"
        callers = before.callers
    groups = read_groups(first_part(statement, "phrase"), before)
    return _apply_posts(ClauseMeaning(Effect.FORBID, groups, callers=callers), statement, None)


def _read_lacking(statement: Derivation, before: ClauseMeaning | None) -> ClauseMeaning:
    """Read "items must not have more than 5 parts" and "items must not have parts"."""
    groups, is_negative, is_only = read_objects(first_part(statement, "np"), before)
    posts = read_posts(_posts_of(statement))
    demanded = Phrase("", statement.find("item")[0].tokens)
    is_plain = posts.condition is True and posts.focus is None and not posts.is_rest
    if is_negative or is_only or not is_plain or demanded.has("APPROVE", "ASK"):
        raise NotFollowedError(join_text(statement.tokens))
    if not demanded.has("BOUND"):
        demanded = Phrase("WITH", demanded.tokens, is_test=True)
    return ClauseMeaning(
        Effect.REQUIRE,
        groups,
        exception=posts.exception,
        required=negate(demanded),
        has_posts=True,
        subjects=groups,
    )


def _read_limited(statement: Derivation, before: ClauseMeaning | None) -> ClauseMeaning:
    """Read "writing is limited to /a" and "reading is reserved for callers with the role `a`"."""
    groups, is_negative, is_only = read_objects(first_part(statement, "np"), before)
    phrases = [to_phrase(pp) for pp in statement.find("pp")]
    words = {one.text.casefold() for one in phrases[0].tokens if one.kind == "WORD"}
    is_reserved = any(one.kind == "LIMITED" and one.text.casefold() == "reserved" for one in statement.tokens)
    if is_reserved or words & CALLERS:
        phrases[0] = Phrase("BY", phrases[0].tokens)
    if is_negative or is_only:
        raise NotFollowedError(join_text(statement.tokens))
    if phrases[0].preposition == "TO" and [one.kind for one in phrases[0].tokens[:1]] == ["NUMBER"]:
        # "Limited to 5 items" is "at most 5 items".
        number, *unit = phrases[0].tokens
        bound = NumericBound("<=", to_number(number.text))
        phrases[0] = Phrase("", (replace(number, kind="BOUND", bounds=(bound,)), *unit))
    required = all_of(*map(read_phrase, merge_phrases(phrases)))
    return ClauseMeaning(Effect.REQUIRE, groups, required=required, has_posts=True, subjects=groups)


def _read_elliptic(statement: Derivation, before: ClauseMeaning | None) -> ClauseMeaning:
    """Read "deleting them is not" and "guests may not", whose verb is that of the clause before."""
    if before is None or before.effect is not Effect.PERMIT or before.focus is not None or before.is_rest:
        raise NotFollowedError(join_text(statement.tokens))
    subject = first_part(statement, "np")
    if statement.has("MAY"):
        callers, is_negative, is_only = read_callers(subject)
        if is_negative or is_only or callers is True or before.callers is True:
            raise NotFollowedError(join_text(statement.tokens))
        return replace(before, effect=Effect.FORBID, callers=callers, excluded=())
    groups, is_negative, is_only = read_objects(subject, before)
    if is_negative or is_only:
        raise NotFollowedError(join_text(statement.tokens))
    return ClauseMeaning(Effect.FORBID, groups, subjects=groups)


def _read_commanded(statement: Derivation, before: ClauseMeaning | None) -> ClauseMeaning:
    """Read "read items only below /a", which limits calls and permits none."""
    groups = read_groups(first_part(statement, "phrase"), before)
    read = read_posts(statement.find("only_post"))
    rest = read_posts([one for one in _posts_of(statement) if one.rule != "only_post"])
    if read.focus is None or rest != Posts() or has_leaf(read.focus, APPROVAL):
        raise NotFollowedError(join_text(statement.tokens))
    return ClauseMeaning(Effect.REQUIRE, groups, required=read.focus, has_posts=True, subjects=groups)


def _read_asked(statement: Derivation, before: ClauseMeaning | None) -> ClauseMeaning:
    place = next(
        index
        for index, one in enumerate(statement)
        if not isinstance(one, Derivation) and one.kind == "BEFORE"
    )
    behind = Derivation(statement.rule, statement.children[place + 1 :])
    phrases = behind.find("phrase")
    if behind.find("np"):
        groups, is_negative, is_only = read_objects(behind.find("np")[0], before)
        if is_negative or is_only:
            raise NotFollowedError(join_text(behind.tokens))
        groups = tuple(
            replace(one, tokens=(*item.tokens, *one.tokens))
            for one in groups
            for item in phrases[0].find("item")
        )
    else:
        groups = _read_asked_groups(phrases[0], before)
    return _apply_posts(ClauseMeaning(Effect.ESCALATE, groups, subjects=groups), behind, None)


def _read_asked_groups(phrase: Derivation, before: ClauseMeaning | None) -> tuple[CallGroup, ...]:
    """Return the calls behind "before", without the agent: "before you read items"."""
    groups = read_groups(phrase, before)
    first = groups[0].tokens
    if first[0].kind == "PRONOUN" and first[0].text.casefold() not in OBJECT_PRONOUNS and len(first) > 1:
        return (replace(groups[0], tokens=first[1:]), *groups[1:])
    return groups


def _read_asked_first(statement: Derivation, before: ClauseMeaning | None) -> ClauseMeaning:
    """Read "before reading items, ask a person"."""
    groups = _read_asked_groups(first_part(statement, "phrase"), before)
    return ClauseMeaning(Effect.ESCALATE, groups, subjects=groups)


def _read_approved(statement: Derivation, before: ClauseMeaning | None) -> ClauseMeaning:
    subject, *others = statement.find("np")
    groups, is_negative, is_only = read_objects(subject, before)
    if is_negative or is_only:
        raise NotFollowedError(join_text(statement.tokens))
    meaning = ClauseMeaning(Effect.ESCALATE, groups, subjects=groups)
    for other in others:
        # "Before they are sent"
        said, is_negative, is_only = read_objects(other, meaning)
        if said != groups or is_negative or is_only:
            raise NotFollowedError(join_text(other.tokens))
        verbs = items_of(first_part(statement, "phrase"))
        crossed = tuple(replace(one, tokens=(*verb.tokens, *one.tokens)) for one in groups for verb in verbs)
        meaning = replace(meaning, groups=crossed)
    return _apply_posts(meaning, statement, None, approver=True)


def _read_needing(statement: Derivation, before: ClauseMeaning | None) -> ClauseMeaning:
    item = statement.find("item")[0]
    is_person = statement.has("SUBJECT_TO") and item.tokens[-1].text.casefold() in {"person", "human"}
    is_none = any(one.kind == "NO" for one in item.tokens)
    if is_none or not (is_person or any(one.kind == "APPROVE" for one in item.tokens)):
        raise NotFollowedError(join_text(item.tokens))
    return _read_approved(statement, before)


def _read_required(statement: Derivation, before: ClauseMeaning | None) -> ClauseMeaning:
    groups, is_negative, is_only = read_objects(first_part(statement, "np"), before)
    if is_negative or is_only:
        raise NotFollowedError(join_text(statement.tokens))
    return _require(ClauseMeaning(Effect.REQUIRE, groups, subjects=groups), statement)


def _split_excluded(statement: Derivation, subject: Derivation) -> tuple[Derivation, tuple[CallGroup, ...]]:
    """Return a statement without the calls that it excludes, and them: "all actions except sending items"."""
    parts = subject.find("part")
    item = parts[0].find("item")[0].tokens
    words = {one.text.casefold() for one in item if one.kind == "WORD"}
    is_all = any(one.kind == "ANYTHING" for one in item) or (
        any(one.kind == "QUANTIFIER" for one in item) and bool(words) and words <= _EVERYTHING
    )
    posts = [one for one in statement.find("except_post") if one.parts[0].rule == "item"]
    if not is_all or len(parts) != 1 or len(posts) != 1:
        return statement, ()
    kept = tuple(one for one in statement.children if one is not posts[0])
    return Derivation(statement.rule, kept), (CallGroup(posts[0].parts[0].tokens),)


def _require(meaning: ClauseMeaning, statement: Derivation) -> ClauseMeaning:
    """Read the requirement behind "must be"."""
    place = next(
        index
        for index, one in enumerate(statement)
        if not isinstance(one, Derivation) and one.kind in {"BE", "HAVE"}
    )
    item, *posts = Derivation("", statement.children[place + 1 :]).parts
    demanded = Phrase("", item.tokens) if item.rule == "item" else to_phrase(item)
    if any(one.kind == "APPROVE" for one in demanded.tokens):
        raise NotFollowedError(join_text(demanded.tokens))
    read = read_posts(posts)
    if read.focus is not None:
        raise NotFollowedError(join_text(statement.tokens))
    conditions = [one for one in posts if one.rule != "pp"]
    places = [one for one in posts if one.rule == "pp"]
    beyond = read_posts(conditions)
    required = all_of(*merge_phrases([demanded, *map(to_phrase, places)]))
    return replace(
        meaning,
        required=all_of(meaning.required, required),
        condition=all_of(meaning.condition, beyond.condition),
        exception=any_of(meaning.exception, read.exception),
        has_posts=True,
    )


def _read_inverted(statement: Derivation, before: ClauseMeaning | None) -> ClauseMeaning:
    """Read "under no circumstances may items be read" and "in no case shall the assistant read items"."""
    read = _read_passive_not if statement.has("BE") else _read_banned
    return read(statement, before)


def _read_unlisted(statement: Derivation, _before: ClauseMeaning | None) -> ClauseMeaning:
    """Read "anything that is not explicitly allowed is forbidden"."""
    anything = tuple(one for one in statement.tokens if one.kind == "ANYTHING")
    return ClauseMeaning(Effect.FORBID, (CallGroup(anything),), is_rest=True)


_STATEMENTS = {
    "inverted": _read_inverted,
    "unlisted": _read_unlisted,
    "passive": _read_passive,
    "passive_not": _read_passive_not,
    "passive_never": _read_passive_never,
    "active": _read_active,
    "middle": _read_middle,
    "neither": _read_neither,
    "judged": _read_judged,
    "judged_to": _read_judged_to,
    "banned": _read_banned,
    "commanded": _read_commanded,
    "asked": _read_asked,
    "asked_first": _read_asked_first,
    "approved": _read_approved,
    "needing": _read_needing,
    "required": _read_required,
    "lacking": _read_lacking,
    "limited": _read_limited,
    "elliptic": _read_elliptic,
}


# ---- Tails: clauses without a subject of their own


def _read_tail(tail: Derivation, before: ClauseMeaning) -> ClauseMeaning:
    """Read a clause that shares the subject of the clause before it."""
    fresh = replace(
        before, condition=True, exception=False, focus=None, required=True, is_rest=False, excluded=()
    )
    if tail.rule == "tail_required":
        if not before.subjects:
            raise NotFollowedError(join_text(tail.tokens))
        return _require(replace(fresh, effect=Effect.REQUIRE, groups=before.groups), tail)
    phrase = first_part(tail, "phrase")
    if tail.rule == "tail_active" and before.subjects and _is_limit(phrase) and not _posts_of(tail):
        # "Items must be new and must not exceed 5 parts"
        return replace(
            fresh, effect=Effect.REQUIRE, groups=before.subjects, required=_to_limit(phrase, tail.parts[0])
        )
    verbs = items_of(first_part(tail, "phrase"))
    if tail.rule == "tail_active" or (tail.rule == "tail_phrase" and not before.subjects):
        groups = read_groups(first_part(tail, "phrase"), before)
    else:
        groups = tuple(
            replace(one, tokens=(*item.tokens, *one.tokens)) for one in before.subjects for item in verbs
        )
    if not groups or not all(any(one.kind == "WORD" for one in item.tokens) for item in verbs):
        raise NotFollowedError(join_text(tail.tokens))
    if tail.rule == "tail_phrase":
        if not before.has_posts or before.focus is not None or before.required is not True:
            raise NotFollowedError(join_text(tail.tokens))
        return _apply_posts(replace(fresh, groups=groups), tail, None)
    if tail.rule == "tail_active" and before.subjects:
        # "Items may be read but must not leave": what the items do is not a call.
        raise NotFollowedError(join_text(tail.tokens))
    return _apply_posts(_with_modal(replace(fresh, groups=groups), tail.parts[0]), tail, tail.parts[0])


def _to_limit(phrase: Derivation, modal: Derivation) -> Formula:
    said = Phrase("", tuple(one for one in phrase.tokens if one.text.casefold() not in _LINKING))
    if modal.rule not in {"permit", "require", "forbid"}:
        raise NotFollowedError(join_text(phrase.tokens))
    return negate(said) if modal.rule == "forbid" else said


def _narrow_clause(tail: Derivation, before: ClauseMeaning, found: list[ClauseMeaning]) -> ClauseMeaning:
    """Read ", not as x" and "but only if x", which are about the clause before."""
    if before.effect is not Effect.PERMIT or before.excluded:
        raise NotFollowedError(join_text(tail.tokens))
    if tail.rule == "tail_phrase":
        bound = Phrase("", tail.tokens)
        focus = all_of(before.focus if before.focus is not None else True, bound)
        return replace(before, condition=all_of(before.condition, bound), focus=focus, has_posts=True)
    posts = read_posts([one for one in tail.parts if one.rule != "item"])
    if tail.rule == "tail_only":
        items = [Phrase("", one.tokens) for one in tail.find("item")]
        if not all(one.has_value for one in items):
            raise NotFollowedError(join_text(tail.tokens))
        said = all_of(posts.condition, posts.focus if posts.focus is not None else True, *items)
        if said is True or posts.exception is not False:
            raise NotFollowedError(join_text(tail.tokens))
        focus = all_of(before.focus if before.focus is not None else True, said)
        return replace(before, condition=all_of(before.condition, said), focus=focus, has_posts=True)
    phrases = [to_phrase(pp) for pp in tail.find("pp")]
    if any(one.has("ELSE") for one in phrases):
        # "In a and b, but not in others": only in a and b.
        if before.condition is True or any(one.has_value for one in phrases):
            raise NotFollowedError(join_text(tail.tokens))
        return replace(before, focus=before.condition, has_posts=True)
    # "As a, not as b": b is forbidden.
    if any(one.preposition in {"WITHOUT", "BY"} for one in phrases):
        raise NotFollowedError(join_text(tail.tokens))
    condition = all_of(*(read_phrase(replace(one, is_test=True)) for one in merge_phrases(phrases)))
    forbidden = replace(before, effect=Effect.FORBID, condition=condition, exception=False, focus=None)
    found.insert(len(found) - 1, forbidden)
    return before


def _with_modal(meaning: ClauseMeaning, modal: Derivation, *, is_negative: bool = False) -> ClauseMeaning:
    effect = _EFFECTS[modal.rule]
    if is_negative:
        if modal.rule != "permit":
            raise NotFollowedError(join_text(modal.tokens))
        effect = Effect.FORBID
    return replace(meaning, effect=effect)


def _apply_posts(
    meaning: ClauseMeaning,
    statement: Derivation,
    modal: Derivation | None,
    *,
    is_only_subject: bool = False,
    approver: bool = False,
) -> ClauseMeaning:
    """Apply the words behind the verb of a statement, and the scope of "only"."""
    parts = _posts_of(statement)
    if approver:
        # The person who approves: "by a manager", "of a person".
        parts = [one for one in parts if not _is_approver(one)]
    posts = read_posts(parts)
    condition, focus = all_of(meaning.condition, posts.condition), posts.focus
    groups, callers = meaning.groups, meaning.callers
    is_only = modal is not None and modal.rule in {"permit_only", "require_only"}
    if is_only:
        focus = all_of(focus if focus is not None else True, posts.condition)
    if is_only_subject:
        said = all_of(callers, *(one.condition for one in groups[:1]))
        if len(groups) != 1 and callers is True:
            raise NotFollowedError(join_text(statement.tokens))
        if callers is True and said is True and any(one.kind in VALUES for one in groups[0].tokens):
            said = EMBEDDED
        focus = all_of(focus if focus is not None else True, callers if callers is not True else said)
    if (is_only or is_only_subject) and focus is True:
        raise NotFollowedError(join_text(statement.tokens))
    if meaning.effect is Effect.REQUIRE:
        required, condition, focus = all_of(meaning.required, posts.condition), meaning.condition, None
        if required is True:
            raise NotFollowedError(join_text(statement.tokens))
    else:
        required = meaning.required
    return replace(
        meaning,
        groups=groups,
        callers=callers,
        condition=condition,
        exception=any_of(meaning.exception, posts.exception),
        focus=focus,
        required=required,
        is_rest=meaning.is_rest or posts.is_rest,
        has_posts=meaning.has_posts or bool(parts),
    )


def _posts_of(statement: Derivation) -> list[Derivation]:
    """Return the parts behind the verb of a statement."""
    skipped = {"np", "phrase", "item", "part", *_EFFECTS}
    return [one for one in statement.parts if one.rule not in skipped]


def _is_approver(post: Derivation) -> bool:
    return post.rule == "pp" and names_approver(to_phrase(post))
