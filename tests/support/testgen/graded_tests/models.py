"""Models of graded quality that know the hidden suite of a task, and see only the prompts of a run.

If a prompt lists survivors or targets, a good model writes the tests of the suite that reach most of them.
Otherwise it goes through the suite in its order, category by category, typical tests first. This models an
author with domain knowledge and without feedback.
"""

from __future__ import annotations

import json
from collections import Counter
from copy import deepcopy
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

from peripety.errors import ResourceExhaustedError
from peripety.testgen.subjects.subject import SubjectKind
from support.testgen.fake_run import Author, Cut, Question

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from support.testgen.graded_tests.tasks import HiddenTest, Task


Json = dict[str, Any]

_LINE = 150
"""Characters of a test by which it is recognized in a prompt, where lines are cut."""

_RATE_LIMITED_EACH = 5
_RETRY_SECONDS = 1.0
_MOST_RECOMMENDED = 3
_NOT_WRITTEN = ("(failed)", "(not_executable)", "(unstable)")


@dataclass(frozen=True)
class Grade:
    """Quality grade of a model.

    Attributes:
        wrong: share of its tests that are wrong: in expectations, in a name, or in form.
        repeats: share of its tests that repeat another test in other words.
        is_lazy: True if it writes the minimum, half of it without expectations, and rates that as good.
        truncates: True if its answers end in the middle of a test.
        is_limited: True if it refuses some prompts.
        is_shuffled: True if its tests come in random order, near misses as early as typical ones.
    """

    wrong: float = 0.0
    repeats: float = 0.0
    is_lazy: bool = False
    truncates: bool = False
    is_limited: bool = False
    is_shuffled: bool = False


MODELS = {
    "perfect": Grade(),
    "perfect, shuffled": Grade(is_shuffled=True),
    "lazy": Grade(is_lazy=True),
    "repetitive": Grade(repeats=0.5),
    "hallucinating 10 %": Grade(wrong=0.1),
    "hallucinating 30 %": Grade(wrong=0.3),
    "hallucinating 50 %": Grade(wrong=0.5),
    "truncating": Grade(truncates=True),
    "rate-limited": Grade(is_limited=True),
}


@dataclass
class GradedModel:
    """Model of one grade for one task.

    Attributes:
        task: the task.
        grade: the quality of its answers.
        seed: seed of its mistakes.
        stubs: the bodies of the tests that it wrote without expectations.
    """

    task: Task
    grade: Grade
    seed: int = 0
    stubs: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = Random(f"{self.seed} {self.task.name}")
        self._order = [*self.task.hidden]
        if self.grade.is_shuffled:
            self._random.shuffle(self._order)
        places = Counter[str]()
        self._places = {test: places.update([test.category]) or places[test.category] for test in self._order}
        self._calls = 0

    @property
    def author(self) -> Author:
        """The same as a gateway."""
        return Author(self._answer)

    def _answer(self, question: Question) -> Any:
        self._calls += 1
        if self.grade.is_limited and self._calls % _RATE_LIMITED_EACH == 0:
            return ResourceExhaustedError("Too many requests", retry_after=_RETRY_SECONDS)
        match question.kind:
            case "tests":
                return [*self._tests(question.said)]
            case "reflection":
                return self._reflection(question.said)
        return self._assessment(question.said)

    def _tests(self, said: Json) -> Iterator[Any]:
        count = said["at_least"] if self.grade.is_lazy else said["at_most"]
        chosen = self._chosen(said, count)
        known = [*self._known(said)]
        for number, test in enumerate(chosen):
            if self.grade.truncates and number == len(chosen) - 1:
                text = json.dumps(_written(test))
                yield text[: len(text) // 2]
                yield Cut()
                return
            if known and self._random.random() < self.grade.repeats:
                yield _in_other_words(self._random.choice(known))
            elif self._random.random() < self.grade.wrong:
                yield self._spoiled(test)
            elif self.grade.is_lazy and number % 2:
                yield self._stub(test)
            else:
                yield _written(test)
            known.append(test)

    def _chosen(self, said: Json, count: int) -> Sequence[HiddenTest]:
        """The tests to write: those that reach most of what the prompt lists, then others of the category."""
        known = {*self._known(said)}
        left = [test for test in self._order if test not in known]
        advised = () if self.grade.is_lazy else said.get("reflection", {}).get("recommendations", ())
        wanted = set() if self.grade.is_lazy else _listed(said)
        chosen: list[HiddenTest] = []
        while left and len(chosen) < count:
            best = max(left, key=lambda test: len(self.task.reach(test, wanted)))
            reached = self.task.reach(best, wanted)
            if not reached:
                break
            wanted -= reached
            chosen.append(best)
            left.remove(best)
        category = said.get("category")
        others = [test for test in left if test.input in advised]
        others += [test for test in left if test not in others and category == test.category]
        # Of all categories in turn.
        others += sorted((test for test in left if test not in others), key=self._places.__getitem__)
        return [*chosen, *others][:count]

    def _known(self, said: Json) -> Iterator[HiddenTest]:
        """Yield the tests of the suite that a prompt lists as written and not as wrong."""
        before = [*said["existing_tests"], *said.get("dropped", ())]
        lines = [line for line in before if not any(mark in line for mark in _NOT_WRITTEN)]
        told = [line.partition(": ")[2][:_LINE] for line in lines]
        for test in self._order:
            start = " ".join(test.input.split())[:_LINE]
            if any(line.startswith(start[: len(line)] if line.endswith("…") else start) for line in told):
                yield test

    def _reflection(self, said: Json) -> Json:
        if self.grade.is_lazy:
            return {"text": "All is tested.", "nothing_missing": True, "recommendations": []}
        next_ones = self._chosen(said, _MOST_RECOMMENDED)
        wanted = _listed(said)
        if wanted:
            next_ones = [test for test in next_ones if self.task.reach(test, wanted)]
        return {
            "text": "Some of it is tested.",
            "nothing_missing": not next_ones,
            "recommendations": [test.input for test in next_ones],
        }

    def _assessment(self, said: Json) -> Json:
        measured = said.get("measured", {})
        killed, survived = measured.get("killed", 0), measured.get("survived", 0)
        score = 9 if self.grade.is_lazy or not killed else max(1, 10 * killed // (killed + survived))
        return {"text": "It is as it is.", "score": score, "gaps": [], "recommendations": []}

    def _spoiled(self, test: HiddenTest) -> Json:
        """A test that its author got wrong."""
        written = _written(test)
        body = written["body"]
        way = self._random.randrange(3)
        match self.task.subject.kind:
            case SubjectKind.SCENARIO:
                _spoil_play(body, way)
            case SubjectKind.POLICY:
                _spoil_request(body, way)
            case SubjectKind.COMMAND:
                _spoil_run(written, way)
        return written

    def _stub(self, test: HiddenTest) -> Json:
        """A test that runs something and expects nothing of it."""
        written = _written(test)
        body = written["body"]
        match self.task.subject.kind:
            case SubjectKind.SCENARIO:
                for step in body["steps"]:
                    step |= {"accepted": None, "expect": None}
            case SubjectKind.POLICY:
                body |= {"server_name": "some_server", "tool_name": "some_tool", "expected": "deny"}
            case SubjectKind.COMMAND:
                body["exit_code"], written["expected_output"] = None, None
        self.stubs.append(json.dumps(body, sort_keys=True))
        return written


def _listed(said: Json) -> set[str]:
    """Return the ids of the survivors and uncovered targets in a prompt."""
    survivors = {entry["mutant"] for entry in said.get("survivors", ())}
    return survivors | {entry["target"] for entry in said.get("uncovered", ())}


def _written(test: HiddenTest) -> Json:
    return {
        "id": "test",
        "category": test.category,
        "input": test.input,
        "body": deepcopy(dict(test.body)),
        "expected_output": test.expected_output,
        "reasoning": "a mistake there would show",
        "confidence": 0.9,
    }


def _in_other_words(test: HiddenTest) -> Json:
    return _written(test) | {"input": f"Once more, {test.input}", "reasoning": "one never knows"}


def _spoil_play(body: Json, way: int) -> None:
    step = body["steps"][-1]
    match way:
        case 0:
            step["expect"] = {"!": [step["expect"]]}
        case 1:
            step["actions"] = [*step["actions"], {"action_id": "no_such_action", "params": {}}]
        case _:
            body["steps"] = ["play as one should"]


def _spoil_request(body: Json, way: int) -> None:
    match way:
        case 0:
            body["expected"] = "deny" if body["expected"] == "allow" else "allow"
        case 1:
            body |= {"tool_name": "no_such_tool", "expected": "allow"}
        case _:
            body["arguments"] = ["whatever the tool takes"]


def _spoil_run(written: Json, way: int) -> None:
    body = written["body"]
    match way:
        case 0:
            written["expected_output"] = f"{written['expected_output']}0"
        case 1:
            body["arguments"] = ["--no-such-option", *body["arguments"]]
        case _:
            body["arguments"] = "whatever it takes"
