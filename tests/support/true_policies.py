"""Policies as they are meant: what a model that makes no mistake would write, and what it would expect."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import TYPE_CHECKING, Any

from peripety import engine
from peripety.policy.types import AnnotatedTool, CompileOrder, Expectation, TestScenario
from support.random_policies import random_policy
from support.random_requests import random_requests

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from peripety.engine import ToolRequest


Json = dict[str, Any]

_LOOKED_AT = 40


@dataclass(frozen=True)
class TruePolicy:
    """A policy that somebody has in mind, with rules that are about one server each."""

    spec: Json

    @classmethod
    def made_up(cls, seed: int, shape: str = "by_server") -> TruePolicy:
        """One from a seed."""
        return cls(random_policy(Random(seed), shape))

    @cached_property
    def compiled(self) -> engine.Policy:
        """The same, to decide by."""
        return engine.compile_policy(json.dumps(self.spec))

    @property
    def tools(self) -> tuple[AnnotatedTool, ...]:
        """The tools that it is about."""
        return tuple(
            AnnotatedTool(
                tool["server_name"],
                tool["tool_name"],
                tool["description"],
                tool["input_schema"],
                tuple((each["path"], each["role"]) for each in tool["argument_roles"]),
                tool.get("read_only", False),
                tool.get("destructive", False),
            )
            for tool in self.spec["tools"]
        )

    @property
    def constitution(self) -> str:
        """What is written of it: a sentence for each rule."""
        return "\n".join(f"{rule['principle']} {json.dumps(rule['when'])}" for rule in self.spec["rules"])

    def order(self, **changed: Any) -> CompileOrder:
        """What to compile, so that it becomes rules."""
        inputs = {"invariants": tuple(self.spec["invariants"]), "lists": self.spec["lists"]}
        return CompileOrder(self.constitution, self.tools, **{**inputs, **changed})

    def rules(self, server: str) -> list[Json]:
        """The rules about a server, in order."""
        return [rule for rule in self.spec["rules"] if rule["when"]["servers"] == [server]]

    def expects(self, request: ToolRequest) -> Expectation:
        """What it has to say to a request."""
        return Expectation(self.compiled.decide(request).decision.value)


def plausible_suite(true: TruePolicy, random: Random, *, each: int = 2) -> list[TestScenario]:
    """What somebody writes who knows the policy and thinks of typical calls.

    For each tool some calls of every decision, and one for each rule about it that decides a typical call.
    """
    return [
        TestScenario(
            f"{request.server_name} {request.tool_name}, call {number}",
            request,
            true.expects(request),
        )
        for tool in true.spec["tools"]
        for number, request in enumerate(_typical(true, tool, random, each))
    ]


def _typical(true: TruePolicy, tool: Json, random: Random, each: int) -> Iterable[ToolRequest]:
    asked = random_requests(random, {"tools": [tool]}, _LOOKED_AT)
    chosen: dict[str, ToolRequest] = {}
    for request, decided in zip(asked, true.compiled.decide_many(asked), strict=True):
        if decided.by_invariant:
            continue
        for key in _thought_of(decided, each):
            if key not in chosen:
                chosen[key] = request
                break
    return chosen.values()


def _thought_of(decided: engine.DecisionResult, each: int) -> Iterator[str]:
    yield decided.rule_id or "no rule"
    yield from (f"{decided.decision.value} {number}" for number in range(each))
