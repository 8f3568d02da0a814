"""Rule derivation: rules of a policy from the sentences of a written policy in English, without a model.

A sentence allows only what was followed to its last word. A permission that is not followed whole gives
nothing. A prohibition that is not followed whole stops all calls of every tool that it may be about. Both are
named, with the part that was not followed.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

from peripety.author.policy_author.binding import Vocabulary
from peripety.author.policy_author.clauses import derive_sentence, find_stop
from peripety.author.policy_author.formulas import (
    MOST_DISJUNCTS,
    Junction,
    all_of,
    assume_approval,
    has_leaf,
    negate,
    replace_leaves,
    to_disjuncts,
)
from peripety.author.policy_author.meaning import (
    EMBEDDED,
    AmbiguousError,
    Effect,
    NotFollowedError,
    Phrase,
    iter_phrases,
    join_text,
)
from peripety.author.policy_author.sentences import singular, split_sentences, stems, verb_stems
from peripety.author.policy_author.statements import read_meaning
from peripety.author.policy_author.tokens import read_tokens
from peripety.author.policy_author.vocabulary import DescribedTool, Test, has_verb, merge_conditions
from peripety.author.text_analysis.languages import OFFLINE_MARK
from peripety.engine.policies.types import CONTEXT_PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from peripety.author.policy_author.binding import BoundGroup
    from peripety.author.policy_author.formulas import Formula
    from peripety.author.policy_author.meaning import ClauseMeaning
    from peripety.author.policy_author.tokens import WordToken


_ORDER = ("deny", "escalate", "allow")
_NO_ID = re.compile(r"[^A-Za-z0-9_-]+")
_MAX_SERVER_NAME = 32
_MAX_REASON = 1_000
_MAX_SENTENCE = 2_000
_MOST_ENDS = 12
_NEGATED = ("no ", "not ")
_PROHIBITING = {"NOT", "DONOT", "NO", "NOTHING", "NOONE", "FORBIDDEN"}
_LIMITING = {
    *_PROHIBITING,
    "MUST",
    "NEED",
    "SUBJECT_TO",
    "ONLY",
    "EXCEPT",
    "OUTSIDE",
    "UNLESS",
    "UNTIL",
    "WITHOUT",
    "APPROVE",
    "ASK",
    "BOUND",
}
"""Terminals of sentences that stop calls. Such a sentence closes tools if it is not followed."""
_RESTRICTING = stems("avoid refuse refrain limit restrict reserve prevent exclude reject confine withhold")
"""Words with the same effect."""


@dataclass(frozen=True, slots=True)
class UnfollowedSentence:
    """Sentence that was not followed to its last word.

    Attributes:
        sentence: the sentence.
        part: the words that were not followed; the whole sentence if none of it was.
        rule_ids: the rules that stop all calls of the tools that it may be about.
    """

    sentence: str
    part: str
    rule_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DerivedRules:
    """Rules from a written policy.

    Attributes:
        rules: the rules of a policy document, strictest first.
        unfollowed: the sentences that were not followed to their last word.
    """

    rules: tuple[dict[str, Any], ...]
    unfollowed: tuple[UnfollowedSentence, ...]


@dataclass(frozen=True, slots=True)
class _Statement:
    """Part of a sentence that becomes one rule."""

    server: str
    tools: tuple[str, ...]
    when: Mapping[str, Any]
    then: str
    is_fallback: bool = False


def build_rules(
    constitution: str,
    tools: Sequence[Mapping[str, Any]],
    lists: Mapping[str, str] | None = None,
    other_tools: Sequence[tuple[str, str]] = (),
) -> DerivedRules:
    """Derive rules from a written policy, sentence by sentence.

    Args:
        constitution: the written policy, in English Markdown.
        tools: the tools, as in a policy document.
        lists: the value kind of each list that the policy may reference as `@name`.
        other_tools: server and name of tools that the policy covers as well; they get no rules here.
    """
    known = [DescribedTool(tool["server_name"], tool["tool_name"], tool) for tool in tools]
    own = {(tool.server, tool.name) for tool in known}
    known += [DescribedTool(server, name, {}) for server, name in other_tools]
    reader = _SentenceReader(Vocabulary(known, lists or {}))
    rules: list[tuple[tuple[bool, int, int], dict[str, Any]]] = []
    unfollowed: list[UnfollowedSentence] = []
    read = [(sentence, *reader.read(sentence)) for sentence in split_sentences(constitution)]
    for number, (sentence, statements, missing) in enumerate(_keep_fallbacks(read), start=1):
        ids: list[str] = []
        for count, statement in enumerate(_keep_tools(statements, own)):
            rule = _build_rule(statement, sentence, f"{number}{_rule_id_suffix(count)}")
            ids.append(rule["id"])
            if missing is None:
                # The sentence is the principle of the rule only if all of it was followed.
                rule["principle"] = sentence
            rules.append(((statement.is_fallback, _ORDER.index(statement.then), number), rule))
        if missing is not None:
            unfollowed.append(replace(missing, rule_ids=tuple(ids)))
    ordered = tuple(rule for _, rule in sorted(rules, key=lambda one: one[0]))
    return DerivedRules(ordered, tuple(unfollowed))


_Read: TypeAlias = tuple[str, list[_Statement], UnfollowedSentence | None]


def _keep_fallbacks(read: Sequence[_Read]) -> Iterator[_Read]:
    """Yield sentences; "everything else is allowed" is not about tools that other sentences permit.

    Without a sentence that was not followed it is not clear what else there is.
    """
    said = [one for _, statements, _ in read for one in statements]
    permitted = {
        (one.server, name)
        for one in said
        if one.then == "allow" and not one.is_fallback
        for name in one.tools
    }
    is_clear = not any(missing for _, _, missing in read)
    for sentence, statements, missing in read:
        kept = [
            one
            if one.then != "allow" or not one.is_fallback
            else replace(one, tools=tuple(name for name in one.tools if (one.server, name) not in permitted))
            for one in statements
        ]
        kept = [one for one in kept if one.tools]
        if [one for one in statements if one.is_fallback and one.then == "allow"] and not (
            is_clear and any(one.is_fallback and one.then == "allow" for one in kept)
        ):
            stopping = [one for one in kept if one.then != "allow"]
            yield sentence, stopping, missing or UnfollowedSentence(sentence, sentence)
        else:
            yield sentence, kept, missing


class _ContradictoryError(NotFollowedError):
    """A derivation was followed, and describes no call: "with force except with force"."""


class _SentenceReader:
    """Reader of single sentences."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    def read(self, sentence: str) -> tuple[list[_Statement], UnfollowedSentence | None]:
        """Return the statements of a sentence, and the part that was not followed, if any."""
        tokens = read_tokens(sentence) if len(sentence) <= _MAX_SENTENCE else []
        if not tokens:
            return [], UnfollowedSentence(sentence, sentence)
        statements: list[_Statement] = []
        parts: list[str] = []
        previous: ClauseMeaning | None = None
        for piece in _split_at_semicolons(tokens):
            try:
                found, previous = self._read_piece(piece, previous)
                statements += found
            except NotFollowedError as error:
                parts.append(_widen_part(piece, error.part) if error.part else join_text(piece))
                statements += self._close_tools(piece)
        if not parts:
            return statements, None
        kept = [one for one in statements if one.then != "allow"]
        return kept, UnfollowedSentence(sentence, "; ".join(parts))

    def _read_piece(
        self,
        tokens: Sequence[WordToken],
        previous: ClauseMeaning | None,
    ) -> tuple[list[_Statement], ClauseMeaning]:
        """Return the statements that all followed derivations agree on.

        Raises:
            NotFollowedError: no derivation was followed, or two of them differ.
        """
        _check_values(tokens)
        readings: dict[str, tuple[list[_Statement], ClauseMeaning]] = {}
        failed: list[NotFollowedError] = []
        is_contradictory = False
        for derivation in derive_sentence(tokens):
            try:
                clauses = read_meaning(derivation, previous)
                statements = [one for clause in clauses for one in self._bind_clause(clause)]
            except NotFollowedError as error:
                failed.append(error)
                is_contradictory = is_contradictory or isinstance(error, _ContradictoryError)
                continue
            key = json.dumps(
                [[one.server, one.tools, one.when, one.then, one.is_fallback] for one in statements]
            )
            readings.setdefault(key, (statements, clauses[-1]))
        if len(readings) == 1 and not is_contradictory:
            return next(iter(readings.values()))
        if readings:
            raise NotFollowedError(join_text(tokens))
        if failed:
            raise min(failed, key=lambda one: (not one.part, len(one.part)))
        raise NotFollowedError(_unread_part(tokens))

    # ---- Statements of a clause

    def _bind_clause(self, clause: ClauseMeaning) -> list[_Statement]:
        is_stopping = clause.effect is not Effect.PERMIT
        bound = self._vocabulary.bind_groups(clause.groups, is_stopping=is_stopping)
        if not bound:
            raise NotFollowedError("")
        counted = [group for group in clause.groups if any(one.kind == "BOUND" for one in group.tokens)]
        if not is_stopping and len(counted) > 1:
            # "At least 5 items and at most 9 parts may be read": both numbers may have to fit.
            raise NotFollowedError(join_text(counted[1].tokens))
        if is_stopping and clause.focus is not None:
            # "Items must not be read only in one place" has two meanings.
            raise NotFollowedError("only")
        found: list[_Statement] = []
        for group, calls in bound:
            is_rest = clause.is_rest or any(one.kind == "ELSE" for one in group.tokens)
            meant = replace(
                clause, condition=all_of(clause.condition, group.condition, clause.callers), is_rest=is_rest
            )
            found += self._bind_group(meant, calls)
        return _join_tools(found, self._vocabulary.tools)

    def _bind_group(self, clause: ClauseMeaning, calls: BoundGroup) -> list[_Statement]:
        condition = all_of(calls.condition, clause.condition)
        whole = all_of(condition, negate(clause.exception))
        found: list[_Statement] = []
        if clause.effect is Effect.PERMIT:
            found = self._bind_permission(clause, calls, condition)
        elif clause.effect is Effect.FORBID:
            found = self._bind_prohibition(clause, calls, whole)
        elif clause.effect is Effect.ESCALATE:
            found += self._state(clause, calls, "escalate", assume_approval(whole, is_given=False))
        else:
            found += self._state(clause, calls, "deny", all_of(whole, negate(clause.required)))
        if not found and calls.tools:
            raise _ContradictoryError(" ".join(calls.words))
        return found

    def _bind_prohibition(self, clause: ClauseMeaning, calls: BoundGroup, whole: Formula) -> list[_Statement]:
        """Return what a prohibition denies, and what it escalates because approval lifts it."""
        denied = assume_approval(whole, is_given=True)
        asked = all_of(assume_approval(whole, is_given=False), negate(denied))
        return [
            *self._state(clause, calls, "deny", denied),
            *self._state(clause, calls, "escalate", asked),
        ]

    def _bind_limit(self, clause: ClauseMeaning, calls: BoundGroup) -> list[_Statement]:
        """Return what "no more than 2 items may be read" denies: other numbers of items."""
        limits = [
            one
            for one in _conjuncts(calls.condition)
            if self._is_counted(one) and _is_limit(one, is_subject=bool(clause.subjects))
        ]
        if not limits:
            return []
        others = [one for one in _conjuncts(calls.condition) if one not in limits]
        beyond = all_of(negate(all_of(*limits)), *others, clause.condition, negate(clause.exception))
        return self._bind_prohibition(clause, calls, beyond)

    def _is_counted(self, formula: Formula) -> bool:
        """Return True for a number in front of a noun: "5 items", but not "items below 5"."""
        tokens = formula.tokens if isinstance(formula, Phrase) else ()
        kinds = [one.kind for one in tokens]
        if "BOUND" not in kinds:
            return False
        before = tokens[: kinds.index("BOUND")]
        return all(self._vocabulary.has_verb([one.text]) for one in before)

    def _bind_permission(
        self, clause: ClauseMeaning, calls: BoundGroup, condition: Formula
    ) -> list[_Statement]:
        """Return what a permission allows, what it escalates, and what its "only" denies."""
        whole = all_of(condition, negate(clause.exception))
        if _mentions_approval(clause.exception):
            raise NotFollowedError("approval")
        if clause.is_rest and not (calls.is_all and whole is True):
            raise NotFollowedError("other")
        if _is_bound_only(calls, self._vocabulary):
            # "At most 5 copies are allowed" describes no call: it limits calls.
            return self._state(clause, calls, "deny", negate(calls.condition))
        allowed = assume_approval(whole, is_given=False)
        # Only a formula with an approval can lead to an escalation.
        is_asked = _mentions_approval(whole)
        asked = all_of(is_asked, assume_approval(whole, is_given=True), negate(allowed))
        found = [
            *self._state(clause, calls, "allow", allowed),
            *self._state(clause, calls, "escalate", asked),
            *self._bind_limit(clause, calls),
        ]
        if clause.focus is None:
            return found
        if has_leaf(clause.focus, EMBEDDED):
            # "Only the item `a`"
            if calls.condition is True:
                raise NotFollowedError("only")
            focus = replace_leaves(clause.focus, lambda leaf: calls.condition if leaf == EMBEDDED else leaf)
            clause = replace(clause, focus=focus)
        rest = all_of(*(one for one in _conjuncts(condition) if one not in _conjuncts(clause.focus)))
        beyond = negate(assume_approval(clause.focus, is_given=True))
        if _mentions_approval(rest) or beyond is True:
            raise NotFollowedError("only")
        denied = self._state(clause, calls, "deny", all_of(rest, beyond, negate(clause.exception)))
        if not denied and not _mentions_approval(clause.focus):
            # "Only in both places" limits nothing that a rule can see.
            raise NotFollowedError("only")
        return [*found, *denied]

    def _state(
        self, clause: ClauseMeaning, calls: BoundGroup, then: str, formula: Formula
    ) -> list[_Statement]:
        """Return a statement for each server and for each condition that some of the tools share."""
        if formula is False:
            return []
        is_stopping = then != "allow"
        groups: dict[str, tuple[_Statement, list[str]]] = {}
        failed: list[NotFollowedError] = []
        is_bound = False
        for tool in calls.tools:
            try:
                tests = self._vocabulary.bind_formula(formula, tool, calls, is_stopping=is_stopping)
            except NotFollowedError as error:
                failed.append(error)
                if is_stopping and (tool in calls.named or isinstance(error, AmbiguousError)):
                    raise
                continue
            is_bound = True
            disjuncts = to_disjuncts(tests)
            if len(disjuncts) > MOST_DISJUNCTS:
                raise NotFollowedError(" ".join(calls.words))
            for disjunct in disjuncts:
                if not all(isinstance(test, Test) for test, _ in disjunct):
                    # The approval is not one that a modal verb gives a meaning to.
                    raise NotFollowedError("approval")
                if any(_may_be_absent(test) and negated != is_stopping for test, negated in disjunct):
                    # Context that is not supplied, or a role that no caller has, must never allow more.
                    raise NotFollowedError(" ".join(calls.words))
                parts = [
                    test.to_condition(is_negated=is_negated, is_stopping=is_stopping)
                    for test, is_negated in disjunct
                ]
                when = merge_conditions(parts)
                key = json.dumps([tool.server, when])
                statement = _Statement(tool.server, (), when, then, clause.is_rest)
                groups.setdefault(key, (statement, []))[1].append(tool.name)
        if failed and not is_bound:
            raise failed[0]
        return [replace(statement, tools=tuple(names)) for statement, names in groups.values()]

    # ---- Sentences that were not followed

    def _close_tools(self, tokens: Sequence[WordToken]) -> list[_Statement]:
        """Return statements that stop all calls of the tools that a prohibition may be about."""
        kinds = {one.kind for one in tokens}
        words = " ".join(one.text for one in tokens if one.kind == "WORD")
        is_limiting = kinds & _LIMITING or "read-only" in words or stems(words) & _RESTRICTING
        # "Closing an item calls for two people": without "may", words about calls may restrict them.
        is_about_calls = not kinds & {"MAY", "ALLOWED"} and self._vocabulary.has_verb(words.split())
        if not (is_limiting or is_about_calls):
            return []
        is_asking = bool(kinds & {"APPROVE", "ASK"}) or not kinds & _PROHIBITING
        then = "escalate" if is_asking else "deny"
        servers: dict[str, list[str]] = {}
        for tool in self._affected_tools(tokens):
            servers.setdefault(tool.server, []).append(tool.name)
        return [_Statement(server, tuple(names), {}, then) for server, names in servers.items()]

    def _affected_tools(self, tokens: Sequence[WordToken]) -> list[DescribedTool]:
        """Return the tools that a sentence may be about, by the parts that were followed or by its words."""
        tools = self._vocabulary.tools
        for end in _iter_ends(tokens):
            found = self._described_tools(tokens[:end])
            if found:
                rest = [one.text for one in tokens[end:] if one.kind == "WORD"]
                # A word that no tool has may be a verb for the same objects: "closed or archived".
                is_joined = tokens[end].kind in {"AND", "OR", "COMMA"} if end < len(tokens) else False
                unknown = is_joined and any(not stems(word) <= tool.names for word in rest for tool in found)
                objects = frozenset().union(*(frozenset(tool.parts[1:]) for tool in found if unknown))
                alike = (tool for tool in tools if has_verb(tool, rest) or objects & set(tool.parts[1:]))
                return list(dict.fromkeys([*found, *alike]))
        words = [one.text for one in tokens if one.kind in {"WORD", "APPROVE", "ASK", "NAME"}]
        said = frozenset().union(*map(stems, words)) if words else frozenset()
        roots = said.union(*map(verb_stems, words))
        named = [
            tool
            for tool in tools
            if has_verb(tool, words) or tool.described_verb in roots or tool.objects & said
        ]
        named = named or [tool for tool in tools if tool.names & said]
        if named:
            return named
        return list(tools) if {one.kind for one in tokens} & _PROHIBITING else []

    def _described_tools(self, tokens: Sequence[WordToken]) -> list[DescribedTool]:
        """Return the tools of a verb in some words that have a derivation; empty without one."""
        for derivation in derive_sentence(tokens):
            try:
                clauses = read_meaning(derivation)
                groups = [
                    calls
                    for clause in clauses
                    for _, calls in self._vocabulary.bind_groups(clause.groups, is_stopping=True)
                ]
            except NotFollowedError:
                continue
            found = dict.fromkeys(tool for calls in groups for tool in calls.tools)
            if found and all(self._vocabulary.has_verb(calls.words) for calls in groups):
                return list(found)
        return []


def _check_values(tokens: Sequence[WordToken]) -> None:
    """Check that no word is missing in front of a value: "from /a /b", "other `a`", "a volume 5", "items 5".

    Raises:
        NotFollowedError: a value has no link to the words in front of it.
    """
    for place, (before, token) in enumerate(pairwise(tokens), start=1):
        if token.kind in {"NAME", "VALUE", "BOUND", "NUMBER"} and before.kind in {
            "NAME",
            "VALUE",
            "NUMBER",
            "ELSE",
            "BOUND",
        }:
            raise NotFollowedError(join_text((before, token)))
        if token.kind != "NUMBER" or before.kind != "WORD":
            continue
        # "Port 22" is a number that names. Other numbers have "of" or a comparison in front of them.
        behind = tokens[place + 1].kind if place + 1 < len(tokens) else ""
        noun = before.text.casefold()
        is_list = behind in {"COMMA", "AND", "OR"}
        has_article = place > 1 and tokens[place - 2].text.casefold() in {"a", "an"}
        if behind == "WORD" or has_article or (singular(noun) != noun and not is_list):
            raise NotFollowedError(join_text((before, token)))


def _keep_tools(statements: Iterable[_Statement], own: set[tuple[str, str]]) -> Iterator[_Statement]:
    """Yield the statements, restricted to some tools."""
    for one in statements:
        names = tuple(name for name in one.tools if (one.server, name) in own)
        if names:
            yield replace(one, tools=names)


def _join_tools(statements: Iterable[_Statement], tools: Sequence[DescribedTool]) -> list[_Statement]:
    """Return the statements, with equal ones joined; tools are in the order of all tools."""
    joined: dict[str, tuple[_Statement, set[str]]] = {}
    for one in statements:
        key = json.dumps([one.server, one.when, one.then, one.is_fallback])
        joined.setdefault(key, (one, set()))[1].update(one.tools)
    return [
        replace(
            one, tools=tuple(tool.name for tool in tools if tool.server == one.server and tool.name in names)
        )
        for one, names in joined.values()
    ]


def _split_at_semicolons(tokens: Sequence[WordToken]) -> Iterator[Sequence[WordToken]]:
    first = 0
    for place, token in enumerate(tokens):
        if token.kind == "SEMICOLON":
            yield tokens[first:place]
            first = place + 1
    yield tokens[first:]


def _iter_ends(tokens: Sequence[WordToken]) -> Iterator[int]:
    """Yield the ends of parts that may have a derivation, longest first."""
    if derive_sentence(tokens):
        yield len(tokens)
    stop = min(find_stop(tokens), len(tokens) - 1)
    yield from range(stop, max(stop - _MOST_ENDS, 1), -1)


def _unread_part(tokens: Sequence[WordToken]) -> str:
    """Return the words behind the longest part that has a derivation; all words without one."""
    for end in _iter_ends(tokens):
        if derive_sentence(tokens[:end]):
            return join_text(tokens[end:])
    return join_text(tokens)


def _widen_part(tokens: Sequence[WordToken], part: str) -> str:
    """Return a part with the words that belong to it: "times" becomes "at most 5 times per hour"."""
    kinds = [one.kind for one in tokens]
    places = [place for place, one in enumerate(tokens) if one.text == part.split(maxsplit=1)[0]]
    if not places or {"MAY", "MUST", "BE"} & set(kinds[places[-1] :]):
        return part
    first = places[-1]
    bounds = [place for place in range(first) if kinds[place] == "BOUND"]
    return join_text(tokens[bounds[-1] if bounds else first :])


def _may_be_absent(test: Test) -> bool:
    """Return True if a test is about context of the call, or about a role of several words."""
    is_context = any(one.startswith(CONTEXT_PREFIX) for one in test.values if isinstance(one, str))
    return test.subject == "roles" and (is_context or test.kind == "compound")


def _mentions_approval(formula: Formula) -> bool:
    return assume_approval(formula, is_given=True) != assume_approval(formula, is_given=False)


def _conjuncts(formula: Formula) -> tuple[Formula, ...]:
    if isinstance(formula, Junction) and formula.operator == "and":
        return tuple(one for part in formula.parts for one in _conjuncts(part))
    return (formula,)


def _is_limit(formula: Formula, *, is_subject: bool) -> bool:
    """Return True for a number that limits what it counts: "no more than 5 items", "at most 5 items may"."""
    if not isinstance(formula, Phrase):
        return False
    bounds = [one for one in formula.tokens if one.kind == "BOUND"]
    return any(
        one.text.casefold().startswith(_NEGATED)
        or (
            is_subject
            and one.bounds[0].operator in {"<=", "<"}
            and not one.text.casefold().startswith("up to")
        )
        for one in bounds
    )


def _is_bound_only(calls: BoundGroup, vocabulary: Vocabulary) -> bool:
    """Return True if a group holds a number and no verb."""
    has_number = any(phrase.has("BOUND") for phrase in iter_phrases(calls.condition))
    return has_number and not vocabulary.has_verb(calls.words)


def _build_rule(statement: _Statement, sentence: str, number: str) -> dict[str, Any]:
    server = _NO_ID.sub("-", statement.server)[:_MAX_SERVER_NAME].strip("-_") or "server"
    return {
        "id": f"{server}.{number}.{statement.then}",
        "description": f"From one sentence of the policy, by its words {OFFLINE_MARK}.",
        "when": {"servers": [statement.server], "tools": list(statement.tools), **statement.when},
        "then": statement.then,
        "reason": f"The policy says: {sentence[:_MAX_REASON]}",
    }


def _rule_id_suffix(count: int) -> str:
    """Return the suffix of a rule id: empty for the first, then `b`, `c`, ... and numbers after `z`."""
    if not count:
        return ""
    return chr(ord("a") + count) if count < 26 else f"-{count + 1}"  # noqa: PLR2004 - letters of the alphabet
