"""Sentence report: the sentences of a written policy that rules enforce whole, in part, or not at all.

The report is made without a model call, from the principles of the rules and from the parts of sentences that
their author named as unexpressed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from peripety.author.policy_author.sentences import split_sentences, stems
from peripety.errors import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from peripety.policy.types import AnnotatedTool


UNREAD_CODE, PARTIAL_CODE = "SENTENCE_UNFOLLOWED", "SENTENCE_IN_PART"
"""Codes of the findings of a report."""

_ALL_FOLLOWED = "all sentences followed"
_WORD_PATTERN = re.compile(r"\w+")
_MAX_SENTENCE_LENGTH = 200
_MAX_LISTED = 5
_PART = re.compile(r'"(?P<part>.*?)" cannot be expressed in: ')
_LIST = re.compile(r"@[A-Za-z_][\w-]*")
_TIME = re.compile(
    r"\b(?:per|hours?|hourly|days?|daily|weeks?|weekends?|weekly|months?|years?|during|later|earlier|before|after"
    r"|until|times|once|twice|old|ago|today|recent(?:ly)?|already|used to)\b",
    re.IGNORECASE,
)
_OWNER = re.compile(r"\b(?:own|owners?|their|his|her|who|whose|started|created)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class UnexpressedPart:
    """A part of a sentence that no rule can express: time, rate, history, an undefined list, unknown words.

    Attributes:
        sentence: the sentence of the written policy.
        part: the words that no rule expresses; the sentence if none of it is expressed.
        rule_ids: the rules that deny or escalate the calls that it may be about.
    """

    sentence: str
    part: str
    rule_ids: tuple[str, ...] = ()


def report_sentences(
    constitution: str,
    rules: Sequence[Mapping[str, Any]],
    unexpressed: Sequence[UnexpressedPart] = (),
    severity: Severity = Severity.WARNING,
    tools: Iterable[AnnotatedTool] = (),
) -> tuple[Finding, ...]:
    """Return a finding for each sentence that rules do not enforce to its last word.

    Args:
        constitution: the written policy.
        rules: all rules, including invariants.
        unexpressed: the parts that the authors of the rules named. A part without rules counts only if no
            rule enforces the sentence: the tools of another author may enforce it.
        severity: the weight of the findings.
        tools: the tools of the policy; by default, each tool of a rule belongs to each of its servers.
    """
    listed = [*tools]
    known = {(tool.server_name, tool.tool_name) for tool in listed}
    enforced = {words for rule in rules for words in _normalized_sentences(rule.get("principle", ""))}
    parts: dict[tuple[str, ...], list[UnexpressedPart]] = {}
    for part in unexpressed:
        parts.setdefault(normalize_words(part.sentence), []).append(part)
    closed = {rule.get("id", ""): _tools_of(rule, known) for rule in rules}
    found: list[Finding] = []
    for sentence in dict.fromkeys(split_sentences(constitution)):
        words = normalize_words(sentence)
        missing = parts.get(words, [])
        if words in enforced:
            missing = [one for one in missing if one.rule_ids]
            if not missing:
                continue
        found.append(_sentence_finding(sentence, missing, closed, listed, severity))
    return tuple(found)


def summarize_sentences(constitution: str, findings: Iterable[Finding]) -> str:
    """Return the line about sentences that precedes all figures of a policy.

    Args:
        constitution: the written policy; empty if it is unknown, then only its findings are counted.
        findings: the findings of the compile run.
    """
    total = len(dict.fromkeys(split_sentences(constitution)))
    found = [*findings]
    partial = [one for one in found if one.code == PARTIAL_CODE]
    unread = sum(one.code == UNREAD_CODE for one in found)
    followed = total - len(partial) - unread
    parts = [match["part"] for one in partial if (match := _PART.match(one.message))]
    named = "; ".join(parts[:_MAX_LISTED]) + ("; …" if len(parts) > _MAX_LISTED else "")
    in_part = f"{len(partial)} in part" + (f" ({named})" if named else "")
    if not total:
        missing = len(partial) + unread
        return f"{missing} not followed: {in_part}, {unread} unread" if missing else _ALL_FOLLOWED
    told = f"{followed} of {total} sentences followed"
    if followed == total:
        return told
    return f"{told}: {followed} enforced, {in_part}, {unread} unread"


def normalize_words(text: str) -> tuple[str, ...]:
    """Return the words of a sentence, which identify it regardless of formatting."""
    return tuple(_WORD_PATTERN.findall(text.casefold()))


def quotes_policy(quotation: str, constitution: str) -> bool:
    """Return True if a text is not empty, and its words stand in the written policy in this order."""
    words, policy = normalize_words(quotation), normalize_words(constitution)
    starts = range(len(policy) - len(words) + 1)
    return bool(words) and any(policy[start : start + len(words)] == words for start in starts)


def _sentence_finding(
    sentence: str,
    missing: Sequence[UnexpressedPart],
    closed_by: Mapping[str, Sequence[str]],
    tools: Sequence[AnnotatedTool],
    severity: Severity,
) -> Finding:
    told = _shorten_sentence(sentence)
    named = [one for one in missing if normalize_words(one.part) != normalize_words(sentence)]
    closed = dict.fromkeys(
        tool for one in missing for rule_id in one.rule_ids for tool in closed_by.get(rule_id, ())
    )
    if not missing:
        return Finding(UNREAD_CODE, "", f"no rule implements: {told}", severity)
    effect = f"closed: {', '.join(closed)}" if closed else "it allows nothing"
    part = min((one.part for one in named or missing), key=len)
    advice = _advise(part, sentence, [*closed], tools)
    hint = f"{effect}; write instead: {advice}"
    if not named and not closed:
        return Finding(UNREAD_CODE, "", f"no rule implements: {told}; write instead: {advice}", severity)
    return Finding(PARTIAL_CODE, "", f'"{part}" cannot be expressed in: {told}; {hint}', severity)


def _advise(part: str, sentence: str, closed: Sequence[str], tools: Sequence[AnnotatedTool]) -> str:
    """Return what to write instead of a part."""
    lists = _LIST.findall(part)
    if lists:
        return f"define {', '.join(lists)} under `lists` in foundation.json, with `kind` and `values`"
    if _TIME.search(part):
        example = f': "`{closed[0].partition("/")[2]}` must be approved by a person."' if closed else ""
        return f"a rule sees one call, not time, rate or history: let a person approve these calls{example}"
    if _OWNER.search(part):
        return "a rule does not know who owns or started what: name the role of the caller, in quotes"
    meant = _describe_meant_tool(sentence, closed, tools)
    return f"use the words of the tool, its arguments or its server{meant}, and put values in quotes"


def _describe_meant_tool(sentence: str, closed: Sequence[str], tools: Sequence[AnnotatedTool]) -> str:
    """Return the tool that shares most words with a sentence, with its arguments; empty if none does."""
    said = stems(sentence)
    shared = [
        (len(said & stems(" ".join([tool.tool_name, *_arguments_of(tool)]))), tool)
        for tool in tools
        if not closed or f"{tool.server_name}/{tool.tool_name}" in closed
    ]
    count, tool = max(shared, key=lambda one: one[0], default=(0, None))
    if tool is None or not count:
        return ""
    arguments = ", ".join(_arguments_of(tool))
    return f" (here perhaps `{tool.tool_name}`" + (f" with {arguments})" if arguments else ")")


def _arguments_of(tool: AnnotatedTool) -> tuple[str, ...]:
    return tuple((tool.input_schema or {}).get("properties", ()))


def _tools_of(rule: Mapping[str, Any], known: Collection[tuple[str, str]]) -> tuple[str, ...]:
    when = rule.get("when", {})
    pairs = product(when.get("servers", ()), when.get("tools", ()))
    return tuple("/".join(pair) for pair in pairs if not known or pair in known)


def _normalized_sentences(principle: str) -> Iterator[tuple[str, ...]]:
    """Yield the words of a principle, and those of each of its sentences."""
    yield normalize_words(principle)
    yield from map(normalize_words, split_sentences(principle))


def _shorten_sentence(sentence: str) -> str:
    return sentence if len(sentence) <= _MAX_SENTENCE_LENGTH else f"{sentence[: _MAX_SENTENCE_LENGTH - 1]}…"
