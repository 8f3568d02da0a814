"""Bills: every token at its price, to the pico-dollar."""

from __future__ import annotations

from peripety.llmsim.provider_rules.billing import (
    Bill,
    BillLine,
    UsageAccount,
    UsageLedger,
    bill_request,
    bill_storage,
)
from peripety.llmsim.provider_rules.limits import fingerprint
from peripety.llmsim.provider_rules.models import load_models
from peripety.llmsim.state import StateTable
from peripety.llmsim.types import Api, BilledUsage
from support.gateway.requests import NOW

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
