"""Meaning of a sentence: effect, described calls, conditions, exceptions and the scope of "only".

The meaning is made from a derivation alone; the tools give its words their meaning afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from peripety.author.policy_author.clauses import Derivation
from peripety.author.policy_author.formulas import APPROVAL, all_of, any_of, negate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from peripety.author.policy_author.formulas import Formula
    from peripety.author.policy_author.tokens import WordToken


class Effect(Enum):
    """Effect of a clause on the calls that it describes."""

    PERMIT = "permit"
    FORBID = "forbid"
    ESCALATE = "escalate"
    REQUIRE = "require"
    """The requirement must hold; other calls are denied."""


class NotFollowedError(Exception):
    """A part of a sentence has no meaning for a rule.

    Attributes:
        part: the words of the sentence.
    """

    def __init__(self, part: str) -> None:
        super().__init__(part)
        self.part = part


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words that restrict calls: a preposition with its object, or the words of a condition.

    Attributes:
        preposition: the terminal of the preposition; empty without one.
        tokens: the words, literals and numbers.
    """

    preposition: str
    tokens: tuple[WordToken, ...]

    @property
    def text(self) -> str:
        """The words, for messages."""
        return join_text(self.tokens)

    def has(self, *kinds: str) -> bool:
        """Return True if a token is of one of the kinds."""
        return any(one.kind in kinds for one in self.tokens)

    @property
    def has_value(self) -> bool:
        """True if it holds a literal or a number."""
        return self.has("NAME", "VALUE", "BOUND", "NUMBER")


@dataclass(frozen=True, slots=True)
class CallGroup:
    """Calls that a clause describes.

    Attributes:
        tokens: the words for the verb and its object.
        condition: the condition on these calls.
    """

    tokens: tuple[WordToken, ...]
    condition: Formula = True


@dataclass(frozen=True, slots=True)
class ClauseMeaning:
    """Meaning of a clause.

    Attributes:
        effect: its effect.
        groups: the calls that it describes.
        subjects: the objects in front of its verb, for clauses that share them.
        callers: phrases about the caller; empty for any caller.
        condition: the condition on all of its calls.
        exception: the calls that it is not about.
        focus: the part of the condition in the scope of "only"; None without "only".
        required: what a requirement demands; True otherwise.
        is_rest: True if it is about the calls that no other clause decides.
        has_posts: True if words follow its verb.
    """

    effect: Effect
    groups: tuple[CallGroup, ...]
    callers: Formula = True
    condition: Formula = True
    exception: Formula = False
    focus: Formula | None = None
    required: Formula = True
    is_rest: bool = False
    has_posts: bool = False
    subjects: tuple[CallGroup, ...] = ()


AGENTS = frozenset({"assistant", "agent", "bot", "model", "ai", "system"})
"""Words for the caller whose calls the policy decides."""

CALLERS = frozenset({"caller", "callers"})
"""Words for any caller."""

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
_IRRELEVANT = {"DETERMINER", "QUANTIFIER"}
_LINKING = frozenset({"return", "returns", "have", "stay", "remain", "be", "contain", "use", "give"})
_EFFECTS = {
    "permit": Effect.PERMIT,
    "permit_only": Effect.PERMIT,
    "forbid": Effect.FORBID,
    "require": Effect.REQUIRE,
    "require_only": Effect.REQUIRE,
}


def join_text(tokens: Iterable[WordToken]) -> str:
    """Return the words of tokens."""
    return " ".join(one.text for one in tokens).replace(" ,", ",")


def read_meaning(sentence: Derivation, previous: ClauseMeaning | None = None) -> list[ClauseMeaning]:
    """Return the meaning of each clause of a derivation.

    Args:
        sentence: the derivation of the sentence.
        previous: the last clause before it in the same sentence, for pronouns.

    Raises:
        NotFollowedError: a part has no meaning.
    """
    found: list[ClauseMeaning] = []
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
            found.append(_read_clause(part, before))
            continue
        if not found:
            raise NotFollowedError(join_text(part.tokens))
        if part.rule in {"tail_not", "tail_only"}:
            found[-1] = _narrow_clause(part, found[-1], found)
        else:
            found.append(_read_tail(part, found[-1]))
    return found


def _read_clause(clause: Derivation, before: ClauseMeaning | None) -> ClauseMeaning:
    *fronts, statement = clause.parts
    meaning = _STATEMENTS[statement.rule](statement, before)
    for front in fronts:
        if front.rule == "front_if":
            meaning = replace(meaning, condition=all_of(meaning.condition, read_condition(front.parts[0])))
            continue
        phrases = [_to_phrase(pp) for pp in front.parts]
        if not meaning.groups:
            meaning = replace(meaning, groups=(CallGroup(tuple(t for one in phrases for t in one.tokens)),))
        else:
            meaning = replace(meaning, condition=all_of(meaning.condition, *merge_phrases(phrases)))
    return meaning


# ---- Statements


def _read_passive(statement: Derivation, before: ClauseMeaning | None) -> ClauseMeaning:
    subject, modal, phrase = _first(statement, "np"), statement.parts[1], _first(statement, "phrase")
    groups, is_negative, is_only = _read_objects(subject, before)
    verbs = phrase.find("item")
    crossed = tuple(
        replace(group, tokens=(*verb.tokens, *group.tokens)) for group in groups for verb in verbs
    )
    return _apply_posts(
        _with_modal(ClauseMeaning(Effect.PERMIT, crossed, subjects=groups), modal, is_negative=is_negative),
        statement,
        modal,
        is_only_subject=is_only,
    )


def _read_active(statement: Derivation, before: ClauseMeaning | None) -> ClauseMeaning:
    subject, modal, phrase = _first(statement, "np"), statement.parts[1], _first(statement, "phrase")
    groups = tuple(CallGroup(item.tokens) for item in phrase.find("item"))
    is_require = modal.rule in {"require", "require_only"}
    if is_require and any(one.kind == "APPROVE" for one in phrase.tokens):
        # "A manager must give permission": the person approves.
        rest = tuple(
            one
            for one in phrase.tokens
            if one.kind not in {"APPROVE", *_IRRELEVANT} and one.text.casefold() not in {"give", "grant"}
        )
        meaning = ClauseMeaning(Effect.ESCALATE, (CallGroup(rest),) if rest else ())
        return _apply_posts(meaning, statement, None)
    if is_require:
        return _read_duty(statement, subject, phrase, before)
    callers, is_negative, is_only = _read_callers(subject)
    meaning = ClauseMeaning(Effect.PERMIT, groups, callers=callers)
    return _apply_posts(
        _with_modal(meaning, modal, is_negative=is_negative), statement, modal, is_only_subject=is_only
    )


def _read_duty(
    statement: Derivation, subject: Derivation, phrase: Derivation, before: ClauseMeaning | None
) -> ClauseMeaning:
    """Read "searches must return at most 5 results"."""
    groups, is_negative, is_only = _read_objects(subject, before)
    (item, *others) = phrase.find("item")
    words = [one for one in item.tokens if one.text.casefold() not in _LINKING]
    if is_negative or is_only or others or len(words) == len(item.tokens):
        raise NotFollowedError(join_text(phrase.tokens))
    if _posts_of(statement):
        raise NotFollowedError(join_text(statement.tokens))
    demanded = Phrase("", tuple(words))
    return ClauseMeaning(Effect.REQUIRE, groups, required=demanded, has_posts=True, subjects=groups)


def _read_judged(statement: Derivation, before: ClauseMeaning | None) -> ClauseMeaning:
    subject, verdict = _first(statement, "np"), statement.parts[1]
    groups, is_negative, is_only = _read_objects(subject, before)
    meaning = _with_modal(
        ClauseMeaning(Effect.PERMIT, groups, subjects=groups), verdict, is_negative=is_negative
    )
    return _apply_posts(meaning, statement, verdict, is_only_subject=is_only)


def _read_judged_to(statement: Derivation, _before: ClauseMeaning | None) -> ClauseMeaning:
    verdict, phrase = statement.parts[0], _first(statement, "phrase")
    groups = tuple(CallGroup(item.tokens) for item in phrase.find("item"))
    return _apply_posts(_with_modal(ClauseMeaning(Effect.PERMIT, groups), verdict), statement, verdict)


def _read_banned(statement: Derivation, _before: ClauseMeaning | None) -> ClauseMeaning:
    groups = tuple(CallGroup(item.tokens) for item in _first(statement, "phrase").find("item"))
    return _apply_posts(ClauseMeaning(Effect.FORBID, groups), statement, None)


def _read_asked(statement: Derivation, before: ClauseMeaning | None) -> ClauseMeaning:
    place = next(
        index
        for index, one in enumerate(statement)
        if not isinstance(one, Derivation) and one.kind == "BEFORE"
    )
    behind = Derivation(statement.rule, statement.children[place + 1 :])
    phrases = behind.find("phrase")
    if behind.find("np"):
        groups, is_negative, is_only = _read_objects(behind.find("np")[0], before)
        if is_negative or is_only:
            raise NotFollowedError(join_text(behind.tokens))
        groups = tuple(
            replace(one, tokens=(*item.tokens, *one.tokens))
            for one in groups
            for item in phrases[0].find("item")
        )
    else:
        groups = tuple(CallGroup(item.tokens) for item in phrases[0].find("item"))
    return _apply_posts(ClauseMeaning(Effect.ESCALATE, groups, subjects=groups), behind, None)


def _read_approved(statement: Derivation, before: ClauseMeaning | None) -> ClauseMeaning:
    groups, is_negative, is_only = _read_objects(_first(statement, "np"), before)
    if is_negative or is_only:
        raise NotFollowedError(join_text(statement.tokens))
    return _apply_posts(
        ClauseMeaning(Effect.ESCALATE, groups, subjects=groups), statement, None, approver=True
    )


def _read_needing(statement: Derivation, before: ClauseMeaning | None) -> ClauseMeaning:
    item = statement.find("item")[0]
    is_person = statement.has("SUBJECT_TO") and item.tokens[-1].text.casefold() in {"person", "human"}
    if not (is_person or any(one.kind == "APPROVE" for one in item.tokens)):
        raise NotFollowedError(join_text(item.tokens))
    return _read_approved(statement, before)


def _read_required(statement: Derivation, before: ClauseMeaning | None) -> ClauseMeaning:
    groups, is_negative, is_only = _read_objects(_first(statement, "np"), before)
    if is_negative or is_only:
        raise NotFollowedError(join_text(statement.tokens))
    return _require(ClauseMeaning(Effect.REQUIRE, groups, subjects=groups), statement)


def _require(meaning: ClauseMeaning, statement: Derivation) -> ClauseMeaning:
    """Read the requirement behind "must be"."""
    place = next(
        index for index, one in enumerate(statement) if not isinstance(one, Derivation) and one.kind == "BE"
    )
    item, *posts = Derivation("", statement.children[place + 1 :]).parts
    demanded = Phrase("", item.tokens) if item.rule == "item" else _to_phrase(item)
    if any(one.kind == "APPROVE" for one in demanded.tokens):
        raise NotFollowedError(join_text(demanded.tokens))
    read = _read_posts(posts)
    if read.focus is not None:
        raise NotFollowedError(join_text(statement.tokens))
    conditions = [one for one in posts if one.rule != "pp"]
    places = [one for one in posts if one.rule == "pp"]
    beyond = _read_posts(conditions)
    required = all_of(*merge_phrases([demanded, *map(_to_phrase, places)]))
    return replace(
        meaning,
        required=all_of(meaning.required, required),
        condition=all_of(meaning.condition, beyond.condition),
        exception=any_of(meaning.exception, read.exception),
        has_posts=True,
    )


_STATEMENTS = {
    "passive": _read_passive,
    "active": _read_active,
    "judged": _read_judged,
    "judged_to": _read_judged_to,
    "banned": _read_banned,
    "asked": _read_asked,
    "approved": _read_approved,
    "needing": _read_needing,
    "required": _read_required,
}


# ---- Tails: clauses without a subject of their own


def _read_tail(tail: Derivation, before: ClauseMeaning) -> ClauseMeaning:
    """Read a clause that shares the subject of the clause before it."""
    fresh = replace(before, condition=True, exception=False, focus=None, required=True, is_rest=False)
    if tail.rule == "tail_required":
        if not before.subjects:
            raise NotFollowedError(join_text(tail.tokens))
        return _require(replace(fresh, effect=Effect.REQUIRE, groups=before.groups), tail)
    verbs = _first(tail, "phrase").find("item")
    if tail.rule == "tail_active" or (tail.rule == "tail_phrase" and not before.subjects):
        groups = tuple(CallGroup(item.tokens) for item in verbs)
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


def _narrow_clause(tail: Derivation, before: ClauseMeaning, found: list[ClauseMeaning]) -> ClauseMeaning:
    """Read ", not as x" and "but only if x", which are about the clause before."""
    if before.effect is not Effect.PERMIT:
        raise NotFollowedError(join_text(tail.tokens))
    posts = _read_posts(tail.parts)
    if tail.rule == "tail_only":
        said = all_of(posts.condition, posts.focus if posts.focus is not None else True)
        if said is True or posts.exception is not False:
            raise NotFollowedError(join_text(tail.tokens))
        focus = all_of(before.focus if before.focus is not None else True, said)
        return replace(before, condition=all_of(before.condition, said), focus=focus, has_posts=True)
    phrases = [_to_phrase(pp) for pp in tail.find("pp")]
    if any(one.has("ELSE") for one in phrases):
        # "In a and b, but not in others": only in a and b.
        if before.condition is True or any(one.has_value for one in phrases):
            raise NotFollowedError(join_text(tail.tokens))
        return replace(before, focus=before.condition, has_posts=True)
    # "As a, not as b": b is forbidden.
    if any(one.preposition in {"WITHOUT", "BY"} for one in phrases):
        raise NotFollowedError(join_text(tail.tokens))
    forbidden = replace(
        before, effect=Effect.FORBID, condition=all_of(*merge_phrases(phrases)), exception=False, focus=None
    )
    found.insert(len(found) - 1, forbidden)
    return before


# ---- Subjects


def _first(node: Derivation, rule: str) -> Derivation:
    return node.find(rule)[0]


def _read_objects(
    subject: Derivation, before: ClauseMeaning | None
) -> tuple[tuple[CallGroup, ...], bool, bool]:
    """Return the calls that a subject describes, whether it is negative, and whether it has "only"."""
    groups: list[CallGroup] = []
    is_negative = is_only = False
    parts = subject.find("part")
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
        posts = _read_posts(part.parts[1:])
        if posts.focus is not None:
            raise NotFollowedError(join_text(part.tokens))
        groups.append(CallGroup(tokens, all_of(posts.condition, negate(posts.exception))))
    if is_only and len(parts) > 1:
        raise NotFollowedError(join_text(subject.tokens))
    return _share_condition(groups), is_negative, is_only


def _share_condition(groups: Sequence[CallGroup]) -> tuple[CallGroup, ...]:
    """Apply the condition behind the last object to the objects before it: "files and folders below /a"."""
    last = groups[-1].condition
    if all(one.condition is True for one in groups[:-1]):
        return tuple(replace(one, condition=last) for one in groups)
    if any(one.condition is True for one in groups):
        raise NotFollowedError(join_text(token for one in groups for token in one.tokens))
    return tuple(groups)


def _read_callers(subject: Derivation) -> tuple[Formula, bool, bool]:
    """Return the condition on the caller, whether the subject is negative, and whether it has "only"."""
    parts = subject.find("part")
    if len(parts) > 1:
        raise NotFollowedError(join_text(subject.tokens))
    (part,) = parts
    tokens = part.find("item")[0].tokens
    is_negative = any(one.kind in {"NO", "NOONE"} for one in tokens)
    posts = _read_posts(part.parts[1:])
    if posts.focus is not None:
        raise NotFollowedError(join_text(part.tokens))
    words = [one for one in tokens if one.kind not in {*_IRRELEVANT, "NO"}]
    condition = all_of(posts.condition, negate(posts.exception))
    if len(words) == 1 and condition is True:
        (word,) = words
        is_all = any(one.kind in {"QUANTIFIER", "NO"} for one in tokens)
        text = word.text.casefold()
        if word.kind in {"PRONOUN", "EVERYONE", "NOONE"} or text in AGENTS or (text in CALLERS and is_all):
            return True, is_negative, part.has("ONLY")
    if any(one.kind in {"NOONE", "PRONOUN", "ELSE", "POSSESSIVE"} for one in words) and condition is True:
        raise NotFollowedError(join_text(tokens))
    kinds = {one.kind for one in words}
    if kinds == {"WORD"} and {one.text.casefold() for one in words} <= CALLERS and condition is not True:
        return condition, is_negative, part.has("ONLY")
    if kinds == {"EVERYONE"} and condition is not True:
        return condition, is_negative, part.has("ONLY")
    if "NAME" in kinds and kinds <= {"WORD", "NAME"} and condition is True:
        return Phrase("BY", tokens), is_negative, part.has("ONLY")
    raise NotFollowedError(join_text(part.tokens))


def _with_modal(meaning: ClauseMeaning, modal: Derivation, *, is_negative: bool = False) -> ClauseMeaning:
    effect = _EFFECTS[modal.rule]
    if is_negative:
        if modal.rule != "permit":
            raise NotFollowedError(join_text(modal.tokens))
        effect = Effect.FORBID
    return replace(meaning, effect=effect)


# ---- Conditions and other words behind a verb


@dataclass(frozen=True, slots=True)
class _Posts:
    """Words behind a verb: their condition, their exceptions, and the scope of "only"."""

    condition: Formula = True
    exception: Formula = False
    focus: Formula | None = None
    is_rest: bool = False


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
    posts = _read_posts(parts)
    condition, focus = all_of(meaning.condition, posts.condition), posts.focus
    groups, callers = meaning.groups, meaning.callers
    is_only = modal is not None and modal.rule in {"permit_only", "require_only"}
    if is_only:
        focus = all_of(focus if focus is not None else True, posts.condition)
    if is_only_subject:
        said = all_of(callers, *(one.condition for one in groups[:1]))
        if len(groups) != 1 and callers is True:
            raise NotFollowedError(join_text(statement.tokens))
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
    return post.rule == "pp" and _names_approver(_to_phrase(post))


def _is_approval(phrase: Phrase) -> bool:
    return phrase.has("APPROVE", "ASK") and phrase.preposition in {"WITH", "AFTER", "WITHOUT"}


def _names_approver(phrase: Phrase) -> bool:
    """Return True for the person who approves: "by a manager", "from a person"."""
    return phrase.preposition in {"BY", "PLACE", "FROM"} and not phrase.has_value and not phrase.has("ELSE")


def _read_posts(parts: Iterable[Derivation]) -> _Posts:
    """Read the words behind a verb, with adjacent phrases merged."""
    flat: list[Phrase | _Posts] = []
    only: list[Phrase] = []
    last: Phrase | None = None
    for part in parts:
        (said, *_) = part.parts or (part,)
        if part.rule == "pp" or (part.rule == "only_post" and said.rule == "pp"):
            last = _to_phrase(part if part.rule == "pp" else said)
            flat.append(last)
            # "Only from a to b" limits both places.
            only += [last] if part.rule == "only_post" or only else []
        elif part.rule == "only_post":
            condition = read_condition(said.parts[0])
            flat.append(_Posts(condition=condition, focus=condition))
        elif part.rule in {"if_post", "relative"}:
            if part.rule == "relative" and last is not None:
                _check_relative(part, last, only)
                flat.remove(last)
            flat.append(_Posts(condition=read_condition(part.parts[0])))
        elif part.rule == "unless_post":
            flat.append(_Posts(exception=read_condition(part.parts[0])))
        elif part.rule == "except_post":
            flat.append(_Posts(exception=_read_except(part, last)))
        elif part.rule != "adverb":
            raise NotFollowedError(join_text(part.tokens))
    return _join_posts(flat, only)


def _check_relative(part: Derivation, last: Phrase, only: Sequence[Phrase]) -> None:
    """Check that a relative clause behind a phrase is about callers: "by callers who have the role"."""
    if not _is_callers(last) or last in only:
        raise NotFollowedError(join_text(part.tokens))


def _is_callers(phrase: Phrase) -> bool:
    words = {one.text.casefold() for one in phrase.tokens if one.kind == "WORD"}
    return phrase.preposition == "BY" and bool(words) and words <= CALLERS and not phrase.has_value


def _join_posts(flat: Sequence[Phrase | _Posts], only: Sequence[Phrase]) -> _Posts:
    phrases = [one for one in flat if isinstance(one, Phrase)]
    others = [one for one in flat if isinstance(one, _Posts)]
    is_rest = False
    kept: list[Phrase] = []
    for phrase in phrases:
        kinds = {one.kind for one in phrase.tokens}
        if kept and _is_approval(kept[-1]) and _names_approver(phrase):
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
    return _Posts(
        all_of(*map(read_phrase, merged), *(one.condition for one in others)),
        any_of(*(one.exception for one in others)),
        all_of(*map(read_phrase, said_only), *focuses) if said_only or focuses else None,
        is_rest,
    )


def _read_except(part: Derivation, last: Phrase | None) -> Formula:
    said = part.parts[0]
    if said.rule == "pp":
        return read_phrase(_to_phrase(said))
    hint = () if last is None or last.has_value else tuple(one for one in last.tokens if one.kind == "WORD")
    phrase = Phrase("" if last is None else last.preposition, (*hint, *said.tokens))
    if not phrase.has_value or phrase.has("ELSE", "POSSESSIVE", "PRONOUN"):
        raise NotFollowedError(join_text(part.tokens))
    return phrase


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
            merged[-1] = Phrase(preposition, (*before.tokens, *phrase.tokens))
        else:
            merged.append(phrase)
    return merged


def _to_phrase(pp: Derivation) -> Phrase:
    preposition, item = pp.children
    assert not isinstance(preposition, Derivation)  # noqa: S101 - the grammar
    assert isinstance(item, Derivation)  # noqa: S101 - the grammar
    return Phrase(preposition.kind, item.tokens)


def read_phrase(phrase: Phrase) -> Formula:
    """Return the formula of a phrase: an approval, its complement, or the phrase itself."""
    if phrase.has("APPROVE", "ASK") and phrase.preposition in {"WITHOUT", "WITH", "AFTER"}:
        kinds = {"APPROVE", "ASK", "WORD", "EVERYONE", *_IRRELEVANT}
        words = {one.text.casefold() for one in phrase.tokens if one.kind == "WORD"}
        if any(one.kind not in kinds for one in phrase.tokens) or (
            phrase.preposition == "WITHOUT" and not words <= _APPROVERS
        ):
            raise NotFollowedError(phrase.text)
        return negate(APPROVAL) if phrase.preposition == "WITHOUT" else APPROVAL
    if phrase.preposition in {"WITHOUT", "AFTER"}:
        raise NotFollowedError(phrase.text)
    if phrase.preposition == "OUTSIDE":
        return negate(Phrase("PLACE", phrase.tokens))
    return phrase


def read_condition(condition: Derivation) -> Formula:
    """Return the formula of a condition."""
    parts = [_read_simple(one) for one in condition.parts]
    return any_of(*parts) if condition.rule == "any_of" else all_of(*parts)


def _read_simple(simple: Derivation) -> Formula:
    if any(one.kind in {"APPROVE", "ASK"} for one in simple.tokens):
        if simple.has("NOT"):
            raise NotFollowedError(join_text(simple.tokens))
        return APPROVAL
    subject: tuple[WordToken, ...] = ()
    parts = simple.parts
    if simple.rule == "stated" and parts[0].rule == "np":
        subject = _read_condition_subject(parts[0])
        parts = parts[1:]
    phrases = [Phrase("", one.tokens) if one.rule == "item" else _to_phrase(one) for one in parts]
    if simple.rule == "named" and not phrases[0].preposition:
        # "Their size exceeds 5"
        phrases[0] = Phrase("", _without_possessive(phrases[0].tokens))
    merged = merge_phrases(phrases)
    if not all(one.has_value for one in merged):
        raise NotFollowedError(join_text(simple.tokens))
    said = [read_phrase(Phrase(one.preposition, (*subject, *one.tokens))) for one in merged]
    return negate(all_of(*said)) if simple.has("NOT") else all_of(*said)


def _read_condition_subject(subject: Derivation) -> tuple[WordToken, ...]:
    """Return the words of the subject of a condition that name an argument or the caller."""
    parts = subject.find("part")
    tokens = parts[0].find("item")[0].tokens
    if len(parts) > 1 or parts[0].has("ONLY") or parts[0].find("pp", "relative", "except_post"):
        raise NotFollowedError(join_text(subject.tokens))
    if any(one.kind not in {"WORD", "PRONOUN", "POSSESSIVE", *_IRRELEVANT} for one in tokens):
        raise NotFollowedError(join_text(subject.tokens))
    if len(tokens) > 1 and any(one.kind == "PRONOUN" for one in tokens):
        raise NotFollowedError(join_text(subject.tokens))
    tokens = _without_possessive(tokens)
    if any(one.kind == "POSSESSIVE" for one in tokens):
        raise NotFollowedError(join_text(subject.tokens))
    return tuple(one for one in tokens if one.kind == "WORD")


def _without_possessive(tokens: tuple[WordToken, ...]) -> tuple[WordToken, ...]:
    """Return the tokens without a possessive in front of a word: "their size"."""
    if [one.kind for one in tokens[:2]] == ["POSSESSIVE", "WORD"]:
        return tokens[1:]
    return tokens


def iter_phrases(formula: Formula) -> Iterator[Phrase]:
    """Yield the phrases of a formula."""
    if isinstance(formula, Phrase):
        yield formula
    for part in getattr(formula, "parts", ()):
        yield from iter_phrases(part)
