"""Rule derivation: rules of a policy from the sentences of a written policy in English, without a model.

A sentence that is not fully understood never allows anything, and is reported.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from peripety.author.policy_author.conditions import (
    ClauseSubject,
    DescribedTool,
    build_caller_condition,
    build_conditions,
    extract_annotation,
    find_caller_roles,
    match_tools,
    merge_conditions,
)
from peripety.author.policy_author.sentences import (
    PLACE_WORDS,
    STOP_WORDS,
    ExtractedLiterals,
    extract_literals,
    split_clauses,
    split_sentences,
    stems,
)
from peripety.author.text_analysis.languages import OFFLINE_MARK

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


class ClauseDecision(Enum):
    """Decision of a clause about its calls."""

    ALLOW = "allow"
    DENY = "deny"
    ESCALATE = "escalate"
    REQUIRE = "require"
    """The condition is required; everything else is denied."""


def _words_pattern(*patterns: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(patterns)})\b", re.IGNORECASE)


_APPROVAL = r"(?:ask\w*|approv\w*|confirm\w*|permission|consent|escalat\w*|sign-?offs?|review\w*)"
_UNLESS_ASKED = _words_pattern(rf"(?:without|unless|until)\b[^,;]*?\b{_APPROVAL}")
_ASK = _words_pattern(
    _APPROVAL,
    r"(?:a|some) (?:person|human) (?:has to|must|decides)",
    r"up to a (?:person|human)",
)
_TWICE = _words_pattern(
    r"(?:not|never|no) (?:be )?(?:forbidden|prohibited|denied|refused|rejected|disallowed)",
)
_NOTHING = _words_pattern("nothing", "nobody", "no one", "no", "neither")
_DENY = _words_pattern(
    "never",
    "not",
    r"can(?:not|.t)",
    "mustn.t",
    "don.t",
    r"forbid(?:s|den)?",
    r"prohibit(?:s|ed)?",
    r"den(?:y|ies|ied)",
    r"refuse[sd]?",
    r"reject(?:s|ed)?",
    r"disallow(?:s|ed)?",
    "off[- ]limits",
)
_DENIED_OTHERWISE = _words_pattern(
    r"(?:may|can|must|shall|should|do(?:es)?|is|are) (?:never|not)(?: be)?(?: allowed| permitted)?",
)
_ALLOW = _words_pattern(r"allow(?:s|ed)?", "may", "can", r"permit(?:s|ted)?", "fine", r"free(?:ly)?")
_MUST = _words_pattern("must", "has to", "have to", "shall", "should", "limited to")
_REST = _words_pattern(
    r"(?:everything|anything|all|any|every\w*|each)\b[^.;]*?\b(?:else|other)",
    "otherwise",
    "by default",
)


def decide_clause(text: str) -> tuple[ClauseDecision | None, str]:
    """Return the decision of a clause, None if it is ambiguous, and the remaining words.

    Args:
        text: the clause without its literals.
    """
    if _TWICE.search(text):
        return None, text
    text, unless = _UNLESS_ASKED.subn(" ", text)
    text, asks = _ASK.subn(" ", text)
    text, denials = _DENIED_OTHERWISE.subn(" ", text)
    text, others = _DENY.subn(" ", text)
    nothing = _NOTHING.search(text) is not None
    denies = bool(denials or others or nothing)
    allows = _ALLOW.search(text) is not None and not nothing
    match bool(unless), bool(asks), denies, allows:
        case (True, _, True, _) | (False, True, False, _):
            return ClauseDecision.ESCALATE, text
        case (True, False, False, True) | (False, False, False, True):
            return ClauseDecision.ALLOW, text
        case (False, False, True, False):
            return ClauseDecision.DENY, text
        case (False, False, False, False) if _MUST.search(text):
            return ClauseDecision.REQUIRE, text
    return None, text


def covers_remaining_calls(text: str) -> bool:
    """Return True if the clause is about all calls that no other clause covers."""
    return _REST.search(text) is not None


_ORDER = ("deny", "escalate", "allow")
_ONLY = re.compile(r"\bonly\b", re.IGNORECASE)
_NO_ID = re.compile(r"[^A-Za-z0-9_-]+")
_MAX_SERVER_NAME = 32
_MAX_REASON = 1_000
_MAX_SENTENCE = 2_000


@dataclass(frozen=True, slots=True)
class DerivedRules:
    """Rules from a written policy.

    Attributes:
        rules: the rules of a policy document, strictest first.
        not_understood: the sentences that are not fully understood.
    """

    rules: tuple[dict[str, Any], ...]
    not_understood: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _ClauseStatement:
    """Decision of one clause about some tools of a server."""

    server: str
    when: Mapping[str, Any]
    then: str
    is_fallback: bool
    tools: tuple[str, ...] = ()


def build_rules(
    constitution: str,
    tools: Iterable[Mapping[str, Any]],
    lists: Mapping[str, str] | None = None,
) -> DerivedRules:
    """Derive rules from a written policy, sentence by sentence.

    A sentence that is only partly understood yields no allow rule. If it stops calls, it stops all calls of
    its tools.

    Args:
        constitution: the written policy, in English Markdown.
        tools: the tools, as in a policy document.
        lists: the value kind of each list that the policy may reference as `@name`.
    """
    known = [DescribedTool(tool["server_name"], tool["tool_name"], tool) for tool in tools]
    rules: list[tuple[tuple[bool, int, int], dict[str, Any]]] = []
    unread: list[str] = []
    for number, sentence in enumerate(split_sentences(constitution), start=1):
        statements, whole = _parse_sentence(sentence, known, lists or {})
        if not whole:
            unread.append(sentence)
            statements = [one for one in statements if one.then != "allow"]
        for count, statement in enumerate(statements):
            rule = _build_rule(statement, sentence, f"{number}{_rule_id_suffix(count)}")
            if whole:
                # The sentence is the principle of the rule only if all of it was understood.
                rule["principle"] = sentence
            rules.append(((statement.is_fallback, _ORDER.index(statement.then), number), rule))
    return DerivedRules(tuple(rule for _, rule in sorted(rules, key=lambda one: one[0])), tuple(unread))


def _parse_sentence(
    sentence: str,
    tools: Sequence[DescribedTool],
    lists: Mapping[str, str],
) -> tuple[list[_ClauseStatement], bool]:
    """Return the statements of a sentence, and whether all of it is understood."""
    if len(sentence) > _MAX_SENTENCE:
        return [], False
    statements: list[_ClauseStatement] = []
    whole = True
    before = ClauseSubject(())
    for clause in split_clauses(sentence):
        found, before, understood = _parse_clause(extract_literals(clause), before, tools, lists)
        statements += found
        whole = whole and understood
    return statements, whole


def _parse_clause(
    clause: ExtractedLiterals,
    before: ClauseSubject,
    tools: Sequence[DescribedTool],
    lists: Mapping[str, str],
) -> tuple[list[_ClauseStatement], ClauseSubject, bool]:
    text, flag = extract_annotation(clause.text)
    verdict, said = decide_clause(text)
    # "All but `this`" is about unnamed tools, which cannot be determined.
    if verdict is None or any(one.is_complement and one.kind == "name" for one in clause.literals):
        return [], before, False
    allows = verdict is ClauseDecision.ALLOW
    rest = covers_remaining_calls(text)
    about = ClauseSubject(tuple(tools)) if rest else match_tools(clause, flag, tools, described=not allows)
    subject = about if about.tools or flag or allows else before
    if not subject.tools:
        return [], subject, bool(flag)
    callers = find_caller_roles(
        clause,
        frozenset(name for tool in tools for name in (tool.name, tool.server)),
    )
    named = _remove_names(clause, subject, callers)
    then = "deny" if verdict is ClauseDecision.REQUIRE else verdict.value
    statements = [
        *_build_statements(
            named,
            subject,
            lists,
            then,
            callers,
            rest=rest,
            opposite=verdict is ClauseDecision.REQUIRE,
        ),
    ]
    if not statements:
        # No argument of the tools can express the literals of the prohibition, so it applies to all their
        # calls.
        whole = ExtractedLiterals(clause.text, (), None)
        stops = verdict in {ClauseDecision.DENY, ClauseDecision.ESCALATE} and not subject.is_all
        widened = (
            _build_statements(whole, subject, lists, then, (), rest=rest, opposite=False) if stops else ()
        )
        return [*widened], subject, False
    if allows and _ONLY.search(text):
        statements += _build_statements(named, subject, lists, "deny", callers, rest=rest, opposite=True)
    left = stems(said) - STOP_WORDS - subject.words
    left -= stems(f"{'role roles' if callers else ''} {'other else otherwise default' if rest else ''}")
    if not allows:
        left -= PLACE_WORDS.union(*(tool.words for tool in subject.tools))
    return statements, subject, not left


def _remove_names(
    clause: ExtractedLiterals,
    subject: ClauseSubject,
    callers: Sequence[str],
) -> ExtractedLiterals:
    """Return the literals about arguments, without names of tools, servers and callers."""
    names = {*callers, *(tool.name for tool in subject.tools), *(tool.server for tool in subject.tools)}
    kept = tuple(one for one in clause.literals if one.kind != "name" or one.value not in names)
    return replace(clause, literals=kept)


def _build_statements(
    clause: ExtractedLiterals,
    subject: ClauseSubject,
    lists: Mapping[str, str],
    then: str,
    callers: Sequence[str],
    *,
    rest: bool,
    opposite: bool,
) -> Iterator[_ClauseStatement]:
    """Yield one statement for each server and for each condition that some of its tools share."""
    groups: dict[str, tuple[_ClauseStatement, list[str]]] = {}
    for tool in subject.tools:
        named = build_conditions(tool, clause, subject, lists, is_stopping=then != "allow", negate=opposite)
        if named is None:
            continue
        parts = [*named, *build_caller_condition(callers, negate=opposite)]
        for when in parts if opposite else [merge_conditions(parts)]:
            key = json.dumps([tool.server, when])
            groups.setdefault(key, (_ClauseStatement(tool.server, when, then, rest), []))[1].append(tool.name)
    for statement, names in groups.values():
        yield replace(statement, tools=tuple(names))


def _build_rule(statement: _ClauseStatement, sentence: str, number: str) -> dict[str, Any]:
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
