"""Suggestion: sentences of a written policy that allow exactly the calls of a decision log.

Calls are joined only where nothing else becomes allowed: two groups of calls that differ in one argument. So
the sentences allow the observed values of each group, and numbers between the smallest and the largest one.
Each sentence is read back by the reader of policies, and all of them together decide every observed call
again.

A call that no sentence expresses is left out, with the reason. So are calls that a rule denied or escalated,
because a suggestion never overrules a rule.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from peripety.author.policy_author.permissions import MOST_LISTED_VALUES, CallLimit, PermissionWriter
from peripety.author.policy_author.rules import build_rules
from peripety.author.policy_author.tokens import NumericBound
from peripety.author.policy_author.vocabulary import Test, value_kind
from peripety.engine import Decision, ToolRequest, compile_policy
from peripety.engine.policies.policy import normalize_value
from peripety.errors import InternalError
from peripety.policy.enforcement.call_regions import (
    CallRegion,
    InexpressibleError,
    RegionReader,
    describe_region,
    describe_way_out,
    join_regions,
    split_values,
)
from peripety.policy.enforcement.context import FORWARDED_OUTCOMES
from peripety.policy.verification.back_translation import DecidedCall

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from peripety.author.policy_author.vocabulary import DescribedTool
    from peripety.engine import Policy
    from peripety.policy.enforcement.call_regions import Values


@dataclass(frozen=True, slots=True)
class SuggestedSentence:
    """A sentence of a suggestion.

    Attributes:
        text: the sentence.
        calls: the number of observed calls that it was made from.
        observed: the first of them, which it allows.
        nearest: a call that just misses it, and stays denied; None if none is found.
        open_arguments: names of the arguments that it does not limit.
    """

    text: str
    calls: int
    observed: ToolRequest
    nearest: DecidedCall | None
    open_arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LeftOutCalls:
    """Calls that no sentence allows.

    Attributes:
        reason: the reason, with the way out.
        sequences: the numbers of their lines in the log.
        is_decided: True if a rule or a person decides about them; False if they cannot be expressed.
    """

    reason: str
    sequences: tuple[int, ...]
    is_decided: bool


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Suggested policy.

    Attributes:
        sentences: its sentences.
        lists: the lists that they name, as in a policy document.
        left_out: the calls that they do not allow.
    """

    sentences: tuple[SuggestedSentence, ...]
    lists: Mapping[str, Mapping[str, Any]]
    left_out: tuple[LeftOutCalls, ...]

    @property
    def constitution(self) -> str:
        """The sentences as the text of a written policy."""
        return "".join(f"- {one.text}\n" for one in self.sentences)


def suggest_sentences(
    policy: Policy, entries: Iterable[Mapping[str, Any]], opened: Collection[str] = ()
) -> Suggestion:
    """Return sentences that allow the calls of a log which went to their tool, and no others.

    Args:
        policy: a policy with the tools of the log; its rules do not matter.
        entries: the lines of the log, as of `read_log`.
        opened: names or roles of arguments that stay unlimited.
    """
    return _Suggester(policy, frozenset(opened)).suggest(entries)


class _Suggester:
    def __init__(self, policy: Policy, opened: frozenset[str]) -> None:
        self._documents: Sequence[Mapping[str, Any]] = policy.spec["tools"]
        self._reader = RegionReader(self._documents, opened)
        self._opened = opened
        self._lists: dict[str, dict[str, Any]] = {}
        self._left: dict[tuple[str, bool], list[int]] = {}

    def suggest(self, entries: Iterable[Mapping[str, Any]]) -> Suggestion:
        groups: dict[str, list[CallRegion]] = {}
        for entry in entries:
            if entry["outcome"] not in FORWARDED_OUTCOMES:
                continue
            decided = _describe_decided(entry)
            if decided:
                self._leave_out(decided, [entry["sequence"]], is_decided=True)
                continue
            try:
                region = self._reader.read(entry)
            except InexpressibleError as error:
                self._leave_out(str(error), [entry["sequence"]])
                continue
            groups.setdefault(describe_region(region), []).append(region)
        regions = [
            replace(same[0], calls=tuple(call for region in same for call in region.calls))
            for same in groups.values()
        ]
        written = [
            (sentence, region)
            for joined in join_regions(regions)
            for region in split_values(joined)
            if (sentence := self._write(region)) is not None
        ]
        sentences = self._add_witnesses(written)
        left = (LeftOutCalls(reason, tuple(at), decided) for (reason, decided), at in self._left.items())
        return Suggestion(sentences, self._lists, tuple(left))

    def _leave_out(self, reason: str, sequences: Iterable[int], *, is_decided: bool = False) -> None:
        self._left.setdefault((reason, is_decided), []).extend(sequences)

    # ---- Limits to sentences

    def _write(self, region: CallRegion) -> str | None:
        """Return the sentence of a region; None, with its calls left out, if no sentence expresses it."""
        limits = [limit for limit in region.fixed if limit.tests[0].subject == "roles"]
        limits += [self._to_limit(region.tool, *key, value) for key, value in region.values.items()]
        limits += [limit for limit in region.fixed if limit.tests[0].subject != "roles"]
        kinds = {name: one["kind"] for name, one in self._lists.items()}
        written = PermissionWriter(self._documents, kinds).write(region.tool, limits)
        if isinstance(written, str):
            return written
        name = f"{region.tool.server}/{region.tool.name}"
        if written is None:
            reason = (
                f"no sentence limits all arguments of {name} at the same time; leave some open with --any"
            )
        else:
            what = " and ".join(written.tests[0].names) or f"the role {written.tests[0].values[0]}"
            way_out = describe_way_out(written.tests[0].names[0]) if written.tests[0].names else ""
            reason = f"no sentence expresses the values of {what} of {name}{way_out}"
        self._leave_out(reason, [sequence for sequence, _ in region.calls])
        return None

    def _to_limit(self, tool: DescribedTool, source: str, name: str, value: Values) -> CallLimit:
        if isinstance(value, tuple) and value[0] == value[1]:
            return CallLimit((Test("choice", (name,), values=value[:1]),))
        if isinstance(value, tuple):
            bounds = (NumericBound(">=", value[0]), NumericBound("<=", value[1]))
            return CallLimit(tuple(Test("bound", (name,), bound=bound) for bound in bounds))
        if source == "argument":
            return CallLimit((Test("choice", (name,), values=tuple(sorted(value))),))
        kind = value_kind(name)
        values = tuple(sorted(_drop_covered(kind, value)))
        if len(values) > MOST_LISTED_VALUES:
            values = (f"@{self._add_list(f'{tool.name}_{name}', kind, values)}",)
        return CallLimit((Test("matcher", (name,), kind, values),))

    def _add_list(self, about: str, kind: str, values: Sequence[str]) -> str:
        """Store a list, and return its name."""
        content = {"kind": kind, "values": [*values]}
        base = "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in about.lower())
        name, number = f"seen_{base}"[:56], 1
        while self._lists.setdefault(name, content) != content:
            number += 1
            name = f"seen_{base}"[:56] + f"_{number}"
        return name

    # ---- Verification

    def _add_witnesses(self, written: Sequence[tuple[str, CallRegion]]) -> tuple[SuggestedSentence, ...]:
        """Compile the sentences, decide every observed call, and return the sentences with two calls each.

        Raises:
            InternalError: the compiled sentences do not allow an observed call.
        """
        by_text: dict[str, list[CallRegion]] = {}
        for sentence, region in written:
            by_text.setdefault(sentence, []).append(region)
        text = "".join(f"- {sentence}\n" for sentence in by_text)
        self._lists = {name: one for name, one in self._lists.items() if f"@{name}" in text}
        read = build_rules(text, self._documents, {name: one["kind"] for name, one in self._lists.items()})
        parts = {"tools": [*self._documents], "lists": self._lists, "rules": [*read.rules]}
        policy = compile_policy(json.dumps({"policy_version": "1.0", "id": "p", "name": "p", **parts}))
        calls = [request for _, region in written for _, request in region.calls]
        is_allowed = all(one.decision is Decision.ALLOW for one in policy.decide_many(calls))
        if read.unfollowed or len(read.rules) != len(by_text) or not is_allowed:
            raise InternalError("the suggested sentences do not allow exactly the observed calls")
        return tuple(
            SuggestedSentence(
                sentence,
                sum(len(region.calls) for region in regions),
                regions[0].calls[0][1],
                _find_nearest(policy, regions[0]),
                tuple(
                    one.name
                    for one in regions[0].tool.arguments
                    if one.name and {one.name, one.role} & self._opened
                ),
            )
            for sentence, regions in by_text.items()
        )


def _describe_decided(entry: Mapping[str, Any]) -> str:
    """Return the reason why a call is not suggested whatever its arguments are; empty without one."""
    if entry["decision"] == Decision.ESCALATE.value:
        return "a person decides about each of these calls"
    if entry["decision"] == Decision.DENY.value and entry["rule_id"]:
        return f"rule {entry['rule_id']} denies them"
    return ""


def _drop_covered(kind: str, values: frozenset[str]) -> Iterator[str]:
    """Yield the values that no other one covers: a path covers everything below it."""
    for value in values:
        above = (other for other in values if kind == "path" and other != value)
        if not any(value.startswith(f"{other.rstrip('/')}/") for other in above):
            yield value


def _find_nearest(policy: Policy, region: CallRegion) -> DecidedCall | None:
    """Return a call that differs from the first call of a region in one argument, and is denied."""
    near = [*_iter_neighbours(region)]
    decided = policy.decide_many(near)
    return next(
        (
            DecidedCall(request, decision)
            for request, decision in zip(near, decided, strict=True)
            if decision.decision is Decision.DENY
        ),
        None,
    )


_BESIDE = {"path": "{}-next", "domain": "next.{}", "email": "next-{}", "identifier": "{}-next"}
"""Forms of a value just beside another one, by kind."""


def _iter_neighbours(region: CallRegion) -> Iterator[ToolRequest]:
    """Yield calls that differ from the first call of a region in one limited argument each."""
    request = region.calls[0][1]
    for source, name in region.values:
        for argument in region.tool.arguments:
            value = request.arguments.get(argument.name)
            if value is not None and name == (argument.role if source == "role" else argument.name):
                kind = value_kind(name) if source == "role" else "identifier"
                yield _with_argument(
                    request, argument.name, _change(value, kind, region.values[source, name])
                )
    for limit in region.fixed:
        test = limit.tests[0]
        is_absent = test.subject == "presence" and limit.is_negated
        if is_absent or test.values == (True,):
            schema = next(one.schema for one in region.tool.arguments if one.name == test.names[0])
            given = {"array": ["text"], "integer": 1, "number": 1, "boolean": limit.is_negated}
            yield _with_argument(request, test.names[0], given.get(schema.get("type", ""), "text"))


def _change(value: Any, kind: str, limit: Values) -> Any:
    if isinstance(limit, tuple):
        return limit[1] + 1
    if isinstance(value, list):
        return [_change(value[0], kind, limit), *value[1:]] if value else [_BESIDE[kind].format("a.test")]
    text = normalize_value(kind, value) or value
    return _BESIDE[kind].format(text.rstrip("/") if kind == "path" else text)


def _with_argument(request: ToolRequest, name: str, value: Any) -> ToolRequest:
    return replace(request, arguments={**request.arguments, name: value})
