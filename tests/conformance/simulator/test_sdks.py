"""The official SDKs, as they are published, against the simulator."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.simulator.cases import ANSWERS, FAILURES, Case, Contract, Mode
from conformance.simulator.drivers import DRIVERS
from conformance.simulator.matrix import all_faults, render
from conformance.simulator.publish import PAGE
from conformance.simulator.run import Run
from peripety.llmsim.faults.kinds import KINDS, FaultStage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


# Warnings of the SDKs about their own code, and about streams that they leave open when a call fails.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning"),
    pytest.mark.filterwarnings(
        "ignore:Exception ignored in. <async_generator object Resp:pytest.PytestUnraisableExceptionWarning",
    ),
    pytest.mark.slow(reason="one case for each official SDK and failure"),
]


@pytest.fixture(scope="session")
def run() -> Iterator[Run]:
    with Run() as one:
        yield one


def of(cases: Sequence[Case], *contracts: Contract) -> pytest.MarkDecorator:
    """Parametrize with each SDK and each of its cases."""
    return pytest.mark.parametrize(
        ("name", "case"),
        [
            pytest.param(driver.name, case, id=f"{driver.name}-{case.name}")
            for driver in DRIVERS
            for case in cases
            if case.contract in contracts and case.name not in driver.lacks
        ],
    )


@of(ANSWERS, Contract.RIGHT)
@pytest.mark.parametrize("mode", Mode, ids=lambda mode: mode.value)
def test_an_answer_is_shown_as_it_was_scripted(run: Run, name: str, case: Case, mode: Mode) -> None:
    assert all_faults(run, run.drivers[name], case, mode) == []


@of(FAILURES, Contract.RIGHT)
@pytest.mark.parametrize("mode", Mode, ids=lambda mode: mode.value)
def test_an_answer_that_is_only_late_or_cut_up_is_right(run: Run, name: str, case: Case, mode: Mode) -> None:
    assert all_faults(run, run.drivers[name], case, mode) == []


@of(FAILURES, Contract.RAISES)
def test_a_failure_is_raised_unless_the_sdk_itself_does_not_notice_it(
    run: Run,
    name: str,
    case: Case,
) -> None:
    driver = run.drivers[name]
    seen = [run.observe(driver, case, None, mode) for mode in Mode]
    seen.append(run.observe(driver, case, 1, Mode.STREAMED))
    assert all(each.raised is not None for each in seen) != (case.name in driver.gaps)


@pytest.mark.parametrize("name", [driver.name for driver in DRIVERS])
def test_every_error_is_raised_as_the_exception_it_has_to_be(run: Run, name: str) -> None:
    driver = run.drivers[name]
    errors = [
        each for each in FAILURES if each.failure and KINDS[each.failure.type].stage is FaultStage.ERROR
    ]
    shown = {
        (each.name, mode): run.observe(driver, each, None, mode).raised for each in errors for mode in Mode
    }
    assert shown == {(each.name, mode): driver.raises[each.name] for each in errors for mode in Mode}


def test_every_kind_of_failure_is_a_case_and_cases_do_not_answer_for_each_other() -> None:
    cases = (*ANSWERS, *FAILURES)
    assert len({case.name for case in cases}) == len(cases)
    failing = {case.failure.type for case in cases if case.failure}
    assert failing == set(KINDS)


def test_the_published_table_is_what_a_run_shows(run: Run) -> None:
    assert PAGE.read_text(encoding="utf-8") == render(run), "make conformance writes the table anew"
