"""Bills: every token at its price, to the pico-dollar.

The meter: a request's life from being let in to being paid for.
"""

from __future__ import annotations

from collections import defaultdict

import pytest

from peripety.llmsim.provider_rules.billing import (
    Bill,
    BillLine,
    Meter,
    UsageAccount,
    UsageLedger,
    bill_request,
    bill_storage,
)
from peripety.llmsim.provider_rules.limits import BucketState, fingerprint
from peripety.llmsim.provider_rules.models import load_models
from peripety.llmsim.script.types import RateLimit, Script
from peripety.llmsim.state import StateTable
from peripety.llmsim.types import Api, ApiError, ApiErrorKind, BilledUsage, CacheSection, SimBlock, SimRequest
from support.gateway.requests import NOW, block, prompt

OPUS = load_models().find("claude-opus-5-5", Api.ANTHROPIC)


def test_each_kind_of_token_is_a_line() -> None:
    usage = BilledUsage(fresh=3, read=1000, written={"1h": 600, "5m": 100}, output=50, reasoning=20)
    charged = bill_request(OPUS, usage, NOW)
    assert charged.lines == (
        BillLine("input", 3, 4_000_000, 12_000_000),
        BillLine("cache_read", 1000, 200_000, 200_000_000),
        BillLine("cache_write_1h", 600, 8_000_000, 4_800_000_000),
        BillLine("cache_write_5m", 100, 5_000_000, 500_000_000),
        BillLine("output", 50, 20_000_000, 1_000_000_000),
    )
    assert charged.total == 6_512_000_000


def test_what_there_is_none_of_is_no_line() -> None:
    assert bill_request(OPUS, BilledUsage(), NOW) == Bill(())
    assert bill_request(OPUS, BilledUsage(output=1), NOW).total == 20_000_000


def test_all_input_tokens_choose_the_row_of_prices() -> None:
    haiku = load_models().find("claude-haiku-5-5", Api.ANTHROPIC)
    assert (
        bill_request(haiku, BilledUsage(fresh=1, read=99_999, output=1), NOW).total
        == 100_000 + 99_999 * 10_000 + 500_000
    )
    assert (
        bill_request(haiku, BilledUsage(fresh=2, read=99_999, output=1), NOW).total
        == 2 * 500_000 + 99_999 * 50_000 + 2_500_000
    )


def test_a_model_without_a_price_costs_nothing() -> None:
    assert bill_request(load_models().find("other", Api.ANTHROPIC), BilledUsage(10, output=10), NOW) == Bill(
        (),
    )


def test_a_sum_of_many_small_bills_is_exact() -> None:
    flash = load_models().find("deepseek-flash", Api.DEEPSEEK)
    assert sum(bill_request(flash, BilledUsage(read=1), NOW).total for _ in range(1000)) == 3_000_000


def test_storage_is_paid_by_token_and_hour() -> None:
    pro = load_models().find("gemini-2.5-pro", Api.GEMINI)
    assert bill_storage(pro, 3000, 3600, NOW).lines == (
        BillLine("cache_storage", 3000, 4_500_000, 13_500_000_000),
    )
    assert bill_storage(pro, 3000, 1800, NOW).total == 6_750_000_000
    assert bill_storage(pro, 1, 0.001, NOW).total == 2  # 1.25, and what is begun is paid
    assert bill_storage(pro, 3000, -1800, NOW).total == -6_750_000_000
    assert bill_storage(load_models().find("other", Api.GEMINI), 1, 1, NOW) == Bill(())


def test_the_ledger_adds_up_what_each_key_uses_of_each_model() -> None:
    ledger = UsageLedger(StateTable())
    usage = BilledUsage(fresh=1, read=2, written={"5m": 3}, output=4, reasoning=1)
    for key, model in (("b", "one"), ("a", "one"), ("a", "two"), ("a", "one")):
        ledger.add_request(key, model, usage, bill_request(OPUS, usage, NOW))
    each = bill_request(OPUS, usage, NOW).total
    assert list(ledger) == [
        UsageAccount("a", "one", 2, BilledUsage(2, 4, {"5m": 6}, 8, 2), 2 * each),
        UsageAccount("a", "two", 1, usage, each),
        UsageAccount("b", "one", 1, usage, each),
    ]


def test_the_ledger_takes_what_is_no_answer() -> None:
    ledger = UsageLedger(StateTable())
    ledger.add_charge("a", "one", Bill((BillLine("cache_storage", 1, 5, 5),)))
    ledger.add_charge("a", "one", Bill((BillLine("cache_storage", 1, 5, -2),)))
    assert list(ledger) == [UsageAccount("a", "one", 0, BilledUsage(), 3)]


def test_a_key_is_known_by_a_fingerprint_that_does_not_hold_it() -> None:
    assert fingerprint("sk-secret") == fingerprint("sk-secret")
    assert fingerprint("sk-secret") != fingerprint("sk-other")
    assert "secret" not in fingerprint("sk-secret")
    assert len(fingerprint("sk-secret")) == 12
    assert fingerprint("") == "-"


OPUS_NAME = "claude-opus-5-5"


class Tables(defaultdict[str, StateTable]):
    def __init__(self) -> None:
        super().__init__(StateTable)

    def fork(self) -> Tables:
        copy = Tables()
        copy.update({name: table.fork() for name, table in self.items()})
        return copy


def meter(*limits: RateLimit, tables: Tables | None = None) -> Meter:
    return Meter(Script(limits=limits), tables if tables is not None else Tables())


def request(
    *blocks: SimBlock,
    api: Api = Api.ANTHROPIC,
    model: str = OPUS_NAME,
    key: str = "sk-1",
    max_tokens: int | None = None,
) -> SimRequest:
    return SimRequest(api, model, (), prompt=prompt(*blocks), key=key, max_tokens=max_tokens)


RULES = block("rules ", 600, ttl="5m", section=CacheSection.SYSTEM)
HELLO = block("hello", 40)


def test_a_request_is_metered_from_its_beginning_to_its_end() -> None:
    whole = meter(RateLimit(input_tokens_per_minute=6400))
    for read, written, left in ((0, {"5m": 600}, 5760), (600, {}, 5720)):
        metered = whole.admit(request(RULES, HELLO), NOW)
        usage = metered.usage(25, 5)
        assert usage == BilledUsage(40, read, written, 25, 5)
        metered.on_started(NOW)
        metered.on_finished(NOW)
        allowance = metered.remaining_limits(NOW)
        assert allowance is not None
        assert allowance.input_tokens is not None
        assert allowance.input_tokens.remaining == left
    account = whole.ledger.account(fingerprint("sk-1"), OPUS_NAME)
    assert (account.requests, account.usage) == (2, BilledUsage(80, 600, {"5m": 600}, 50, 10))
    assert account.amount == 80 * 4_000_000 + 600 * 200_000 + 600 * 5_000_000 + 50 * 20_000_000


def test_the_bill_follows_the_usage_that_was_told_last() -> None:
    metered = meter().admit(request(HELLO), NOW)
    assert metered.bill.total == 40 * 4_000_000
    metered.usage(1)
    assert metered.bill.total == 40 * 4_000_000 + 20_000_000


def test_what_never_started_is_not_paid_for_and_leaves_nothing() -> None:
    whole = meter(RateLimit(tokens_per_minute=1000, requests_per_minute=10, concurrency=1))
    metered = whole.admit(request(RULES, HELLO), NOW)
    metered.on_abandoned(NOW)
    assert list(whole.ledger) == []
    again = whole.admit(request(RULES, HELLO), NOW)
    assert again.usage(0).read == 0
    allowance = again.remaining_limits(NOW)
    assert allowance is not None
    assert allowance.tokens == BucketState(1000, 360, 38.4)
    assert allowance.requests == BucketState(10, 8, 12.0)


def test_what_was_started_is_paid_for_when_its_reader_leaves() -> None:
    whole = meter()
    metered = whole.admit(request(RULES, HELLO), NOW)
    metered.usage(10)
    metered.on_started(NOW)
    metered.on_abandoned(NOW)
    assert [account.usage for account in whole.ledger] == [BilledUsage(40, 0, {"5m": 600}, 10)]
    assert whole.admit(request(RULES, HELLO), NOW).usage(0).read == 600


def test_a_request_ends_once() -> None:
    whole = meter(RateLimit(concurrency=1))
    metered = whole.admit(request(HELLO), NOW)
    metered.on_finished(NOW)
    metered.on_finished(NOW)
    metered.on_abandoned(NOW)
    assert [account.requests for account in whole.ledger] == [1]


def test_an_answer_that_is_repeated_is_read_where_answers_are_cached() -> None:
    whole = meter()
    answer = block("answer", 30, message=1)
    whole.admit(request(HELLO, api=Api.DEEPSEEK, model="deepseek-flash"), NOW).on_finished(NOW, [answer])
    longer = request(HELLO, answer, block("why?", 5, message=2), api=Api.DEEPSEEK, model="deepseek-flash")
    assert whole.admit(longer, NOW).usage(0) == BilledUsage(5, 70)


def test_a_request_that_is_refused_makes_no_entry_live_on() -> None:
    whole = meter(RateLimit(requests_per_minute=1))
    whole.admit(request(RULES), NOW).on_finished(NOW)
    with pytest.raises(ApiError):
        whole.admit(request(RULES), NOW + 10)
    assert whole.admit(request(RULES), NOW + 299).usage(0).read == 600
    assert whole.admit(request(RULES), NOW + 600).usage(0).read == 0


def test_a_request_that_is_let_in_makes_what_it_reads_live_on() -> None:
    whole = meter()
    whole.admit(request(RULES), NOW).on_finished(NOW)
    for number in (1, 2, 3):
        metered = whole.admit(request(RULES), NOW + 299 * number)
        assert metered.usage(0).read == 600
        metered.on_finished(NOW + 299 * number)


def test_the_output_that_is_allowed_is_reserved_until_it_is_known() -> None:
    whole = meter(RateLimit(tokens_per_minute=1000))
    metered = whole.admit(request(HELLO, max_tokens=900), NOW)
    with pytest.raises(ApiError):
        whole.admit(request(HELLO, max_tokens=100), NOW)
    metered.usage(60)
    metered.on_finished(NOW)
    whole.admit(request(HELLO, max_tokens=800), NOW)


def test_forks_go_separate_ways() -> None:
    tables = Tables()
    whole = meter(RateLimit(requests_per_minute=2), tables=tables)
    whole.admit(request(RULES), NOW).on_finished(NOW)
    fork = meter(RateLimit(requests_per_minute=2), tables=tables.fork())
    assert fork.admit(request(RULES), NOW).usage(0).read == 600
    assert [account.requests for account in fork.ledger] == [1]
    whole.admit(request(RULES), NOW)
    with pytest.raises(ApiError):
        whole.admit(request(RULES), NOW)


def test_other_limits_hold_after_a_reload() -> None:
    whole = meter()
    whole.apply_limits(Script(limits=(RateLimit(requests_per_minute=1),)))
    whole.admit(request(HELLO), NOW)
    with pytest.raises(ApiError):
        whole.admit(request(HELLO), NOW)


def test_no_key_is_kept_anywhere() -> None:
    tables = Tables()
    whole = meter(RateLimit(requests_per_minute=9), tables=tables)
    whole.admit(request(RULES, HELLO, key="sk-very-secret"), NOW).on_finished(NOW)
    kept = {name: [(key, table.get(key)) for key in table] for name, table in tables.items()}
    assert kept["bills"]
    assert "secret" not in repr(kept)


@pytest.mark.parametrize(
    ("api", "model", "tokens", "code", "message"),
    [
        (
            Api.ANTHROPIC,
            "claude-haiku-4-5",
            200_001,
            None,
            "prompt is too long: 200001 tokens > 200000 maximum",
        ),
        (
            Api.OPENAI_CHAT,
            "gpt-4o",
            128_001,
            "context_length_exceeded",
            (
                "This model's maximum context length is 128000 tokens. However, your messages resulted in "
                "128001 tokens. Please reduce the length of the messages."
            ),
        ),
        (
            Api.GEMINI,
            "gemini-2.5-pro",
            1_048_577,
            None,
            "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).",
        ),
    ],
)
def test_a_prompt_longer_than_the_models_context_is_refused(
    api: Api,
    model: str,
    tokens: int,
    code: str | None,
    message: str,
) -> None:
    with pytest.raises(ApiError) as error:
        meter().admit(request(block("a", tokens), api=api, model=model), NOW)
    assert (error.value.kind, error.value.code) == (ApiErrorKind.INVALID_REQUEST, code)
    assert error.value.message == message
    meter().admit(request(block("a", tokens - 1), api=api, model=model), NOW)
