"""A subject of a few lines, to measure tests on: a bounded sum, with its mistakes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.core.mutation import Mutant, MutantOutcome
from peripety.errors import Finding
from peripety.testgen.subjects.subject import RunResult, SubjectKind, SubjectTarget
from peripety.testgen.types import DraftTest, TaskContext, TestCase, TestStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence


_HIGH = 10
_MISTAKES: dict[str, Callable[[int, int], int]] = {
    "difference": lambda one, other: min(one - other, _HIGH),
    "unbounded": lambda one, other: one + other,
    "bound_less": lambda one, other: min(one + other, _HIGH - 1),
    "bound_more": lambda one, other: min(one + other, _HIGH + 1),
    "one_more": lambda one, other: min(one + other + 1, _HIGH),
    "always_zero": lambda _one, _other: 0,
    "turned": lambda one, other: min(other + one, _HIGH),
}


def toy_test(
    test_id: str,
    one: int,
    other: int,
    equals: int | None,
    *,
    below: int | None = None,
    given: str = "",
    **fields: Any,
) -> TestCase:
    """A test of the sum of two numbers."""
    body = {"one": one, "other": other, "equals": equals, "below": below}
    fields = {"category": "correctness", "body": body, **fields}
    return TestCase(test_id, input=given or f"{one} and {other}", **fields)


class ToySubject:
    """The smaller of a sum and ten.

    Args:
        flaky: whether it shows something else every time.

    Attributes:
        compared: the mutants that it was asked to compare with itself, a list for each time.
    """

    kind = SubjectKind.SCENARIO
    context = TaskContext.PROMPT
    material: Mapping[str, Any] = {"means": "the smaller of a sum and ten"}
    body_schema: Mapping[str, Any] = {"type": "object"}
    targets: Sequence[SubjectTarget] = (
        SubjectTarget("side", "/below", "a sum below the bound"),
        SubjectTarget("side", "/above", "a sum above the bound"),
        SubjectTarget("side", "/both", "a sum above and below the bound", is_reachable=False),
        SubjectTarget("sign", "/negative", "a negative sum"),
    )

    def __init__(self, *, flaky: bool = False) -> None:
        self.compared: list[list[str]] = []
        self._flaky = flaky
        self._runs = 0

    @property
    def mutants(self) -> Sequence[Mutant]:
        return [Mutant(name, name, "", None, None, MutantOutcome.SURVIVED) for name in _MISTAKES]

    def problems(self, body: Mapping[str, Any]) -> Sequence[Finding]:
        if isinstance(body.get("one"), int) and isinstance(body.get("other"), int):
            return ()
        return (Finding("NOT_A_NUMBER", "/one", "it is no number."),)

    def soundness(self, test: TestCase) -> Sequence[Finding]:
        body = test.body or {}
        if body.get("equals") is None and body.get("below") is None:
            return (Finding("STUB", "", "it expects nothing."),)
        return ()

    def same_input(self, body: Mapping[str, Any]) -> Any:
        return {"one": body["one"], "other": body["other"]}

    def run(self, test: TestCase) -> RunResult:
        assert test.body is not None
        self._runs += 1
        value = min(test.body["one"] + test.body["other"], _HIGH)
        wrong = _wrong(test.body, value)
        status = TestStatus.FAILED if wrong else TestStatus.PASSED
        side = "side:/above" if test.body["one"] + test.body["other"] > _HIGH else "side:/below"
        covered = {side, "sign:/negative"} if value < 0 else {side}
        trace = f"{value} {self._runs}" if self._flaky else str(value)
        findings = [Finding("EXPECTATION_NOT_MET", f"/{key}", f"it is {value}.") for key in wrong]
        return RunResult(status, str(value), trace, tuple(findings), frozenset(covered))

    def kills(self, test: TestCase, among: Collection[str]) -> frozenset[str]:
        body = test.body
        assert body is not None
        return frozenset(name for name in among if _wrong(body, _MISTAKES[name](body["one"], body["other"])))

    def equivalent(self, among: Collection[str]) -> frozenset[str]:
        self.compared.append([*among])
        return frozenset({"turned"} & {*among})

    def baseline_tests(self) -> Iterable[DraftTest]:
        for one in (0, _HIGH):
            body = {"one": one, "other": 0, "equals": one, "below": None}
            yield DraftTest(f"boundary_{one}", f"{one} and 0", body=body, category="boundary")


def _wrong(body: Mapping[str, Any], value: int) -> list[str]:
    equals, below = body.get("equals"), body.get("below")
    wrong = ["equals"] if equals is not None and equals != value else []
    return wrong + (["below"] if below is not None and value >= below else [])
