"""The breaker's states, and which calls change them."""

from __future__ import annotations

import pytest

from peripety.errors import UnavailableError
from peripety.gateway.calls.circuit_breaker import (
    BreakerOutcome,
    BreakerThresholds,
    CircuitBreaker,
    CircuitState,
)

WORKED, FAILED, UNKNOWN = BreakerOutcome.SUCCEEDED, BreakerOutcome.FAILED, BreakerOutcome.NEUTRAL


class Watch:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.moment = 100.0

    def __call__(self) -> float:
        return self.moment


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture
def breaker(watch: Watch) -> CircuitBreaker:
    return CircuitBreaker("generic", BreakerThresholds(failures=5, open_seconds=60, successes=2), watch)


def make(breaker: CircuitBreaker, *outcomes: BreakerOutcome) -> None:
    for outcome in outcomes:
        breaker.release(breaker.acquire(), outcome)


def refusal(breaker: CircuitBreaker) -> UnavailableError:
    with pytest.raises(UnavailableError) as caught:
        breaker.acquire()
    assert caught.value.code == "PROVIDER_CIRCUIT_OPEN"
    return caught.value


def test_as_many_failures_as_configured_open_it_for_as_long_as_configured(
    breaker: CircuitBreaker,
    watch: Watch,
) -> None:
    make(breaker, *[FAILED] * 5)
    watch.moment += 20
    assert refusal(breaker).retry_after == 40
    watch.moment += 40
    breaker.acquire()


def test_one_failure_less_leaves_it_closed(breaker: CircuitBreaker) -> None:
    make(breaker, *[FAILED] * 4)
    assert not breaker.is_open


def test_a_success_between_failures_starts_the_count_again(breaker: CircuitBreaker) -> None:
    make(breaker, *[FAILED] * 4, WORKED, *[FAILED] * 4)
    assert not breaker.is_open


def test_what_says_nothing_about_the_provider_neither_counts_nor_starts_again(
    breaker: CircuitBreaker,
) -> None:
    make(breaker, *[UNKNOWN] * 50, *[FAILED] * 4, *[UNKNOWN] * 50)
    assert not breaker.is_open
    make(breaker, FAILED)
    assert breaker.is_open


def test_failures_of_calls_that_go_on_together_count_when_they_end(breaker: CircuitBreaker) -> None:
    periods = [breaker.acquire() for _ in range(20)]
    for period in periods[:4]:
        breaker.release(period, FAILED)
    assert not breaker.is_open
    breaker.release(periods[4], FAILED)
    assert breaker.is_open


@pytest.mark.parametrize("outcome", list(BreakerOutcome))
def test_what_a_call_from_before_reports_while_it_is_open_changes_nothing(
    breaker: CircuitBreaker,
    watch: Watch,
    outcome: BreakerOutcome,
) -> None:
    late = breaker.acquire()
    make(breaker, *[FAILED] * 5)
    watch.moment += 30
    breaker.release(late, outcome)
    assert refusal(breaker).retry_after == 30


@pytest.mark.parametrize("outcome", list(BreakerOutcome))
def test_what_a_call_from_before_reports_during_the_trial_is_no_part_of_it(
    breaker: CircuitBreaker,
    watch: Watch,
    outcome: BreakerOutcome,
) -> None:
    late = [breaker.acquire() for _ in range(3)]
    make(breaker, *[FAILED] * 5)
    watch.moment += 60
    probes = [breaker.acquire(), breaker.acquire()]
    for period in late:
        breaker.release(period, outcome)
    refusal(breaker)
    for period in probes:
        breaker.release(period, WORKED)
    assert not breaker.is_open


def test_half_open_no_more_calls_are_let_through_than_successes_are_needed(
    breaker: CircuitBreaker,
    watch: Watch,
) -> None:
    make(breaker, *[FAILED] * 5)
    watch.moment += 60
    probes = [breaker.acquire(), breaker.acquire()]
    assert refusal(breaker).retry_after is not None
    breaker.release(probes[0], WORKED)
    refusal(breaker)
    breaker.release(probes[1], WORKED)
    for _ in range(10):
        breaker.acquire()


def test_a_probe_that_says_nothing_makes_room_for_another(breaker: CircuitBreaker, watch: Watch) -> None:
    make(breaker, *[FAILED] * 5)
    watch.moment += 60
    make(breaker, UNKNOWN, UNKNOWN, UNKNOWN, WORKED)
    assert breaker.is_open
    make(breaker, WORKED)
    assert not breaker.is_open


def test_a_probe_that_fails_opens_it_for_the_whole_time_again(breaker: CircuitBreaker, watch: Watch) -> None:
    make(breaker, *[FAILED] * 5)
    watch.moment += 60
    make(breaker, WORKED)
    other = breaker.acquire()
    watch.moment += 5
    breaker.release(other, FAILED)
    assert refusal(breaker).retry_after == 60


def test_the_second_of_two_probes_may_fail_after_the_first_opened_it_again(
    breaker: CircuitBreaker,
    watch: Watch,
) -> None:
    make(breaker, *[FAILED] * 5)
    watch.moment += 60
    probes = [breaker.acquire(), breaker.acquire()]
    breaker.release(probes[0], FAILED)
    watch.moment += 10
    breaker.release(probes[1], FAILED)
    assert refusal(breaker).retry_after == 50


def test_closed_again_it_takes_as_many_failures_as_at_first(breaker: CircuitBreaker, watch: Watch) -> None:
    make(breaker, *[FAILED] * 5)
    watch.moment += 60
    make(breaker, WORKED, WORKED, *[FAILED] * 4)
    assert not breaker.is_open
    make(breaker, FAILED)
    assert breaker.is_open


def test_its_state_and_its_delay_can_be_read(breaker: CircuitBreaker, watch: Watch) -> None:
    make(breaker, *[FAILED] * 2)
    assert (breaker.state, breaker.failures, breaker.retry_delay) == (CircuitState.CLOSED, 2, None)
    make(breaker, *[FAILED] * 3)
    watch.moment += 20
    assert (breaker.state, breaker.failures, breaker.retry_delay) == (CircuitState.OPEN, 0, 40)
    watch.moment += 40
    assert (breaker.state, breaker.retry_delay) == (CircuitState.HALF_OPEN, None)
    make(breaker, WORKED, WORKED)
    assert (breaker.state, breaker.retry_delay) == (CircuitState.CLOSED, None)
