"""Limits: what is let in, what is left, and when to come back."""

from __future__ import annotations

import pytest

from peripety.llmsim.provider_rules.limits import BucketState, RateAdmission, RateAllowance, RateLimits
from peripety.llmsim.script.types import RateLimit
from peripety.llmsim.state import StateTable
from peripety.llmsim.types import ApiError, ApiErrorKind, BilledUsage
from support.gateway.requests import NOW


class Gate:
    """Client with an API key and a manual clock that sends requests to a rate-limited model."""

    def __init__(self, *limits: RateLimit, table: StateTable | None = None) -> None:
        self.table = StateTable() if table is None else table
        self.limits = RateLimits(limits, self.table)
        self.now = NOW

    def ask(
        self,
        usage: BilledUsage | None = None,
        *,
        key: str = "key",
        model: str = "model",
    ) -> RateAdmission:
        return self.limits.admit(key, model, usage or BilledUsage(), self.now)

    def refused(
        self,
        usage: BilledUsage | None = None,
        *,
        key: str = "key",
        model: str = "model",
    ) -> ApiError:
        with pytest.raises(ApiError) as error:
            self.ask(usage, key=key, model=model)
        assert error.value.kind is ApiErrorKind.RATE_LIMIT
        return error.value

    def wait(self, error: ApiError) -> float:
        assert error.retry is not None
        return error.retry.seconds


def left(admission: RateAdmission, now: float) -> RateAllowance:
    allowance = admission.remaining_limits(now)
    assert allowance is not None
    return allowance


def test_without_a_limit_everything_is_let_in_and_nothing_is_said() -> None:
    gate = Gate(RateLimit("other-*", requests_per_minute=1))
    admissions = [gate.ask(BilledUsage(10**9)) for _ in range(100)]
    assert admissions[-1].remaining_limits(NOW) is None


def test_requests_beyond_the_limit_are_refused_until_there_is_room() -> None:
    gate = Gate(RateLimit(requests_per_minute=3))
    for _ in range(3):
        gate.ask()
    error = gate.refused()
    assert gate.wait(error) == 20
    assert error.message == (
        "Rate limit reached for model on requests per min (RPM): Limit 3, Used 3, Requested 1. "
        "Please try again in 20s."
    )


@pytest.mark.parametrize("per_minute", [1, 3, 7, 60, 997, 50_000])
def test_who_comes_back_when_told_is_let_in_and_not_a_microsecond_before(per_minute: int) -> None:
    gate = Gate(RateLimit(requests_per_minute=per_minute))
    for _ in range(per_minute):
        gate.ask()
    wait = gate.wait(gate.refused())
    gate.now = NOW + wait - 2e-6
    gate.refused()
    gate.now = NOW + wait
    gate.ask()


def test_what_is_left_refills_continuously() -> None:
    gate = Gate(RateLimit(requests_per_minute=60))
    for _ in range(60):
        admission = gate.ask()
    assert left(admission, NOW).requests == BucketState(60, 0, 60.0)
    assert left(admission, NOW + 1.5).requests == BucketState(60, 1, 58.5)
    assert left(admission, NOW + 60).requests == BucketState(60, 60, 0.0)
    assert left(admission, NOW + 3600).requests == BucketState(60, 60, 0.0)


def test_input_and_output_count_together_against_tokens() -> None:
    gate = Gate(RateLimit(tokens_per_minute=1000))
    admission = gate.ask(BilledUsage(fresh=100, read=200, written={"5m": 300}, output=50))
    assert left(admission, NOW).tokens == BucketState(1000, 350, 39.0)


def test_what_is_read_from_the_cache_is_no_limited_input() -> None:
    gate = Gate(RateLimit(input_tokens_per_minute=1000))
    admission = gate.ask(BilledUsage(fresh=100, read=100_000, written={"5m": 300}, output=50))
    assert left(admission, NOW).input_tokens == BucketState(1000, 600, 24.0)


def test_output_that_was_reserved_and_not_written_is_given_back() -> None:
    gate = Gate(RateLimit(tokens_per_minute=1000))
    admission = gate.ask(BilledUsage(fresh=100, output=800))
    assert left(admission, NOW).tokens == BucketState(1000, 100, 54.0)
    admission.settle(BilledUsage(fresh=100, output=20), NOW)
    assert left(admission, NOW).tokens == BucketState(1000, 880, 7.2)


def test_output_alone_is_paid_for_when_it_was_written() -> None:
    gate = Gate(RateLimit(output_tokens_per_minute=600))
    admission = gate.ask(BilledUsage(output=100_000))
    assert left(admission, NOW).output_tokens == BucketState(600, 600, 0.0)
    admission.settle(BilledUsage(output=660), NOW)
    assert left(admission, NOW).output_tokens == BucketState(600, 0, 66.0)
    assert gate.wait(gate.refused()) == pytest.approx(6.1)


def test_a_request_is_settled_once() -> None:
    gate = Gate(RateLimit(tokens_per_minute=1000))
    admission = gate.ask(BilledUsage(output=500))
    admission.settle(BilledUsage(), NOW)
    admission.settle(BilledUsage(output=400), NOW)
    assert left(admission, NOW).tokens == BucketState(1000, 1000, 0.0)


def test_what_is_more_than_the_whole_limit_never_fits() -> None:
    error = Gate(RateLimit(input_tokens_per_minute=1000)).refused(BilledUsage(1001))
    assert error.retry is None
    assert error.message.startswith(
        "Request too large for model on input tokens per min (ITPM): Limit 1000, Requested 1001.",
    )


def test_a_refused_request_uses_nothing_up() -> None:
    gate = Gate(RateLimit(requests_per_minute=10, tokens_per_minute=100))
    admission = gate.ask(BilledUsage(90))
    gate.refused(BilledUsage(20))
    allowance = left(admission, NOW)
    assert (allowance.requests, allowance.tokens) == (BucketState(10, 9, 6.0), BucketState(100, 10, 54.0))


def test_the_longest_wait_is_told() -> None:
    gate = Gate(RateLimit(requests_per_minute=1, tokens_per_minute=60))
    gate.ask(BilledUsage(60))
    assert gate.wait(gate.refused(BilledUsage(30))) == 60
    gate.now += 59
    assert gate.wait(gate.refused(BilledUsage(60))) == 1


def test_each_key_has_its_own_limits() -> None:
    gate = Gate(RateLimit(requests_per_minute=1))
    gate.ask(key="one")
    gate.ask(key="two")
    gate.refused(key="one")


def test_models_of_one_limit_share_it_and_the_first_that_fits_holds() -> None:
    gate = Gate(RateLimit("small-*", requests_per_minute=2), RateLimit(requests_per_minute=1))
    gate.ask(model="small-1")
    gate.ask(model="small-2")
    gate.refused(model="small-3")
    gate.ask(model="large-1")
    gate.refused(model="large-2")


def test_only_so_many_are_under_way_at_once() -> None:
    gate = Gate(RateLimit(concurrency=2))
    first, _ = gate.ask(), gate.ask()
    error = gate.refused()
    assert error.retry is None
    assert "concurrent requests: Limit 2" in error.message
    first.settle(BilledUsage(), NOW)
    gate.ask()
    gate.refused()


def test_what_was_used_is_remembered_with_the_table() -> None:
    gate = Gate(RateLimit(requests_per_minute=1))
    gate.ask()
    Gate(RateLimit(requests_per_minute=1), table=gate.table.fork()).refused()


def test_other_limits_hold_at_once_and_what_was_used_stays_used() -> None:
    gate = Gate(RateLimit(requests_per_minute=10))
    for _ in range(6):
        gate.ask()
    gate.limits.replace_limits([RateLimit(requests_per_minute=5)])
    for _ in range(4):
        gate.ask()
    gate.refused()


def test_time_that_runs_backwards_fills_nothing() -> None:
    gate = Gate(RateLimit(requests_per_minute=1))
    gate.ask()
    gate.now -= 3600
    gate.refused()


def test_time_that_is_made_up_for_fills_nothing_twice() -> None:
    gate = Gate(RateLimit(requests_per_minute=2))
    gate.ask()
    gate.now -= 60
    gate.ask()
    gate.now += 60
    gate.refused()
