"""Rules from the sentences of a written policy."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from peripety.authoring.policies.conditions import caller_condition, conditions, named_callers, together
from peripety.authoring.policies.decisions import Verdict, is_about_the_rest, verdict_of
from peripety.authoring.policies.literals import Read, read
from peripety.authoring.policies.sentences import clauses_of, sentences_of
from peripety.authoring.policies.tools import Subject, Tool, subject_of, without_flags
from peripety.authoring.policies.words import CONNECTING, PLACES, stems
from peripety.authoring.reading.languages import MARK

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

__all__ = ["RulesRead", "rules_from"]

_ORDER = ("deny", "escalate", "allow")
_ONLY = re.compile(r"\bonly\b", re.IGNORECASE)
_NO_ID = re.compile(r"[^A-Za-z0-9_-]+")
_LONGEST_SERVER = 32
_LONGEST_TEXT = 1_000
_LONGEST_SENTENCE = 2_000


@dataclass(frozen=True, slots=True)
class RulesRead:
    """Rules from a written policy.

    Attributes:
        rules: the rules of a policy document, strictest first.
        unread: the sentences that are not fully understood.
    """

    rules: tuple[dict[str, Any], ...]
    unread: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Statement:
    """Decision of one clause about some tools of a server."""

    server: str
    when: Mapping[str, Any]
    then: str
    rest: bool
    tools: tuple[str, ...] = ()


def rules_from(
    constitution: str, tools: Iterable[Mapping[str, Any]], lists: Mapping[str, str] | None = None
) -> RulesRead:
    """Derive rules from a written policy, sentence by sentence.

    A sentence that is only partly understood yields no allow rule. If it stops calls, it stops all calls of
    its tools.

    Args:
        constitution: the written policy, in English Markdown.
        tools: the tools, as in a policy document.
        lists: the value kind of each list that the policy may reference as `@name`.
    """
    known = [Tool(tool["server_name"], tool["tool_name"], tool) for tool in tools]
    rules: list[tuple[tuple[bool, int, int], dict[str, Any]]] = []
    unread: list[str] = []
    for number, sentence in enumerate(sentences_of(constitution), start=1):
        statements, whole = _sentence(sentence, known, lists or {})
        if not whole:
            unread.append(sentence)
            statements = [one for one in statements if one.then != "allow"]
        for count, statement in enumerate(statements):
            rule = _rule(statement, sentence, f"{number}{_suffix(count)}")
            if whole:
                # The sentence is the principle of the rule only if all of it was understood.
                rule["principle"] = sentence
            rules.append(((statement.rest, _ORDER.index(statement.then), number), rule))
    return RulesRead(tuple(rule for _, rule in sorted(rules, key=lambda one: one[0])), tuple(unread))


def _sentence(
    sentence: str, tools: Sequence[Tool], lists: Mapping[str, str]
) -> tuple[list[_Statement], bool]:
    """Return the statements of a sentence, and whether all of it is understood."""
    if len(sentence) > _LONGEST_SENTENCE:
        return [], False
    statements: list[_Statement] = []
    whole = True
    before = Subject(())
    for clause in clauses_of(sentence):
        found, before, understood = _clause(read(clause), before, tools, lists)
        statements += found
        whole = whole and understood
    return statements, whole


def _clause(
    clause: Read, before: Subject, tools: Sequence[Tool], lists: Mapping[str, str]
) -> tuple[list[_Statement], Subject, bool]:
    text, flag = without_flags(clause.text)
    verdict, said = verdict_of(text)
    # "All but `this`" is about unnamed tools, which cannot be determined.
    if verdict is None or any(one.others and one.kind == "name" for one in clause.literals):
        return [], before, False
    allows = verdict is Verdict.ALLOW
    rest = is_about_the_rest(text)
    about = Subject(tuple(tools)) if rest else subject_of(clause, flag, tools, described=not allows)
    subject = about if about.tools or flag or allows else before
    if not subject.tools:
        return [], subject, bool(flag)
    callers = named_callers(clause, frozenset(name for tool in tools for name in (tool.name, tool.server)))
    named = _without_names(clause, subject, callers)
    then = "deny" if verdict is Verdict.REQUIRE else verdict.value
    statements = [
        *_statements(named, subject, lists, then, callers, rest=rest, opposite=verdict is Verdict.REQUIRE)
    ]
    if not statements:
        # No argument of the tools can express the literals of the prohibition, so it applies to all their
        # calls.
        whole = Read(clause.text, (), None)
        stops = verdict in {Verdict.DENY, Verdict.ESCALATE} and not subject.is_all
        widened = _statements(whole, subject, lists, then, (), rest=rest, opposite=False) if stops else ()
        return [*widened], subject, False
    if allows and _ONLY.search(text):
        statements += _statements(named, subject, lists, "deny", callers, rest=rest, opposite=True)
    left = stems(said) - CONNECTING - subject.words
    left -= stems(f"{'role roles' if callers else ''} {'other else otherwise default' if rest else ''}")
    if not allows:
        left -= PLACES.union(*(tool.words for tool in subject.tools))
    return statements, subject, not left


def _without_names(clause: Read, subject: Subject, callers: Sequence[str]) -> Read:
    """Return the literals about arguments, without names of tools, servers and callers."""
    names = {*callers, *(tool.name for tool in subject.tools), *(tool.server for tool in subject.tools)}
    kept = tuple(one for one in clause.literals if one.kind != "name" or one.value not in names)
    return replace(clause, literals=kept)


def _statements(
    clause: Read,
    subject: Subject,
    lists: Mapping[str, str],
    then: str,
    callers: Sequence[str],
    *,
    rest: bool,
    opposite: bool,
) -> Iterator[_Statement]:
    """Yield one statement for each server and for each condition that some of its tools share."""
    groups: dict[str, tuple[_Statement, list[str]]] = {}
    for tool in subject.tools:
        named = conditions(tool, clause, subject, lists, stops=then != "allow", opposite=opposite)
        if named is None:
            continue
        parts = [*named, *caller_condition(callers, opposite=opposite)]
        for when in parts if opposite else [together(parts)]:
            key = json.dumps([tool.server, when])
            groups.setdefault(key, (_Statement(tool.server, when, then, rest), []))[1].append(tool.name)
    for statement, names in groups.values():
        yield replace(statement, tools=tuple(names))


def _rule(statement: _Statement, sentence: str, number: str) -> dict[str, Any]:
    server = _NO_ID.sub("-", statement.server)[:_LONGEST_SERVER].strip("-_") or "server"
    return {
        "id": f"{server}.{number}.{statement.then}",
        "description": f"From one sentence of the policy, by its words {MARK}.",
        "when": {"servers": [statement.server], "tools": list(statement.tools), **statement.when},
        "then": statement.then,
        "reason": f"The policy says: {sentence[:_LONGEST_TEXT]}",
    }


def _suffix(count: int) -> str:
    """Return the suffix of a rule id: empty for the first, then `b`, `c`, ... and numbers after `z`."""
    if not count:
        return ""
    return chr(ord("a") + count) if count < 26 else f"-{count + 1}"  # noqa: PLR2004 - letters of the alphabet
