"""Sentences of policies with expected decisions, from tests/data/policy_sentences."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peripety import engine
from peripety.author.policy_author.rules import build_rules
from support.policy_texts import ExpectedCall, parse_call, parse_tool

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from peripety.author.policy_author.rules import DerivedRules
    from peripety.engine import ToolRequest

FOLDER = Path(__file__).resolve().parents[1] / "data" / "policy_sentences"
_CALL = re.compile(r"(?P<name>\w+) = (?P<call>.+)")
_EXPECTED = re.compile(r"(?P<decision>allow|deny|escalate|stop|any): (?P<names>.+)")


@dataclass(frozen=True, slots=True)
class SentenceCase:
    """A sentence of a policy, its tools, and the expected decision of each call.

    Attributes:
        domain: the name of its tools.
        text: the sentence; some cases have two.
        is_open: True if a rule behind the sentence allows every call.
        tools: the tools, as in a policy document.
        calls: the calls by their names, with allow, deny, escalate, stop or any as the expectation.
        listed: the names of the calls that the case lists; the others follow from `is_open`.
    """

    domain: str
    text: str
    is_open: bool
    tools: tuple[dict[str, Any], ...]
    calls: Mapping[str, ExpectedCall]
    listed: frozenset[str]


@dataclass(frozen=True, slots=True)
class ReadCase:
    """A case with the rules that were read from it, and their decision of each call."""

    case: SentenceCase
    derived: DerivedRules
    decisions: Mapping[str, str]

    @property
    def is_followed(self) -> bool:
        """True if the reader claims to have followed every sentence to its last word."""
        return not self.derived.unfollowed

    @property
    def unsafe(self) -> tuple[str, ...]:
        """The calls that are allowed against the text."""
        return tuple(
            name
            for name, call in self.case.calls.items()
            if self.decisions[name] == "allow" and call.expected not in {"allow", "any"}
        )

    @property
    def needless(self) -> tuple[str, ...]:
        """The calls that are stopped against the text."""
        return tuple(
            name
            for name, call in self.case.calls.items()
            if self.decisions[name] != "allow" and call.expected == "allow"
        )

    @property
    def wrong(self) -> tuple[str, ...]:
        """The listed calls that are decided in another way than expected."""
        return tuple(
            name
            for name in sorted(self.case.listed)
            if not _is_right(self.case.calls[name].expected, self.decisions[name])
        )


def load_cases(half: str) -> tuple[SentenceCase, ...]:
    """Return the cases of a part: `development`, `sealed` or `fresh`."""
    written = (FOLDER / f"{half}.txt").read_text(encoding="utf-8")
    return tuple(case for block in re.split(r"(?m)^== ", written)[1:] for case in _parse_domain(block))


def read_case(case: SentenceCase) -> ReadCase:
    """Read the rules of a case, and decide its calls."""
    derived = build_rules(case.text, case.tools)
    decided = decide_calls(derived, case.tools, [one.request for one in case.calls.values()], case.is_open)
    return ReadCase(case, derived, dict(zip(case.calls, decided, strict=True)))


def read_without_word(case: SentenceCase) -> Iterator[tuple[str, ReadCase]]:
    """Yield each word of a case with the case as it is read without that word."""
    words = case.text.split()
    for place, word in enumerate(words):
        end = word[-1] if word[-1] in ".;" else ""
        shorter = [*words[:place], *words[place + 1 :]]
        if end and place:
            shorter[place - 1] += end
        yield word, read_case(replace(case, text=" ".join(shorter)))


def decide_calls(
    derived: DerivedRules, tools: Sequence[dict[str, Any]], calls: Sequence[ToolRequest], is_open: bool
) -> list[str]:
    """Return the decision of each call by the derived rules, before a rule that allows all if `is_open`."""
    compiled = engine.compile_policy(json.dumps(to_policy(derived, tools, is_open=is_open)))
    return [compiled.decide(call).decision.value for call in calls]


def to_policy(derived: DerivedRules, tools: Sequence[dict[str, Any]], *, is_open: bool) -> dict[str, Any]:
    """Return the policy of derived rules, before a rule that allows all if `is_open`."""
    rules = [*derived.rules]
    if is_open:
        everything = {"tools": [tool["tool_name"] for tool in tools]}
        rules.append({"id": "rest", "when": everything, "then": "allow", "reason": "The rest is allowed."})
    return {"policy_version": "1.0", "id": "a", "name": "a", "tools": list(tools), "rules": rules}


def score_cases(cases: Iterable[ReadCase]) -> Counter[str]:
    """Return the numbers of sentences and calls, by outcome.

    `right` is of `listed`; `needless` and `needless_followed` are of `expected_allow` and
    `expected_allow_followed`, the calls that the text allows; `_followed` restricts them to sentences that
    the reader claims to have followed.
    """
    counts: Counter[str] = Counter(unsafe=0, needless=0, needless_followed=0)
    for one in cases:
        allowed = sum(call.expected == "allow" for call in one.case.calls.values())
        counts["sentences"] += 1
        counts["followed"] += one.is_followed
        counts["calls"] += len(one.case.calls)
        counts["listed"] += len(one.case.listed)
        counts["right"] += len(one.case.listed) - len(one.wrong)
        counts["unsafe"] += len(one.unsafe)
        counts["expected_allow"] += allowed
        counts["needless"] += len(one.needless)
        if one.is_followed:
            counts["expected_allow_followed"] += allowed
            counts["needless_followed"] += len(one.needless)
    return counts


def _is_right(expected: str, actual: str) -> bool:
    return actual == expected or (expected == "stop" and actual != "allow")


def _parse_domain(block: str) -> Iterator[SentenceCase]:
    head, *rest = re.split(r"(?m)^(?=>)", block)
    name, *lines = head.strip().splitlines()
    calls = {match["name"]: match["call"] for line in lines if (match := _CALL.fullmatch(line))}
    tools = tuple(parse_tool(line) for line in lines if not _CALL.fullmatch(line))
    text: list[str] = []
    for part in rest:
        sentence, *expected = part.strip().splitlines()
        text.append(sentence)
        if expected:
            yield _parse_case(name, text, expected, tools, calls)
            text = []


def _parse_case(
    domain: str,
    text: Sequence[str],
    expected: Sequence[str],
    tools: tuple[dict[str, Any], ...],
    calls: Mapping[str, str],
) -> SentenceCase:
    is_open = text[0].startswith(">>")
    decisions: dict[str, str] = {}
    listed: set[str] = set()
    for line in expected:
        match = _EXPECTED.fullmatch(line)
        assert match, line
        for pattern in match["names"].split():
            names = [name for name in calls if fnmatchcase(name, pattern)]
            assert names, (text, pattern)
            assert not decisions.keys() & set(names), (text, pattern)
            decisions.update(dict.fromkeys(names, match["decision"]))
            listed.update(names if match["decision"] != "any" else ())
    other = "allow" if is_open else "stop"
    parsed = {name: parse_call(decisions.get(name, other), call) for name, call in calls.items()}
    said = "\n".join(line.lstrip("> ") for line in text)
    return SentenceCase(domain, said, is_open, tools, parsed, frozenset(listed))
