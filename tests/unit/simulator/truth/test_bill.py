"""Bills: every token at its price, to the pico-dollar."""

from __future__ import annotations

from peripety.simulator.model import Api, Usage
from peripety.simulator.state import Table
from peripety.simulator.truth.bill import Account, Bill, Ledger, Line, bill, storage
from peripety.simulator.truth.keys import fingerprint
from peripety.simulator.truth.models import catalogue
from support.prompts import NOW

OPUS = catalogue().find("claude-opus-5-5", Api.ANTHROPIC)


def test_each_kind_of_token_is_a_line() -> None:
    usage = Usage(fresh=3, read=1000, written={"1h": 600, "5m": 100}, output=50, reasoning=20)
    charged = bill(OPUS, usage, NOW)
    assert charged.lines == (
        Line("input", 3, 4_000_000, 12_000_000),
        Line("cache_read", 1000, 200_000, 200_000_000),
        Line("cache_write_1h", 600, 8_000_000, 4_800_000_000),
        Line("cache_write_5m", 100, 5_000_000, 500_000_000),
        Line("output", 50, 20_000_000, 1_000_000_000),
    )
    assert charged.total == 6_512_000_000


def test_what_there_is_none_of_is_no_line() -> None:
    assert bill(OPUS, Usage(), NOW) == Bill(())
    assert bill(OPUS, Usage(output=1), NOW).total == 20_000_000


def test_all_input_tokens_choose_the_row_of_prices() -> None:
    haiku = catalogue().find("claude-haiku-5-5", Api.ANTHROPIC)
    assert (
        bill(haiku, Usage(fresh=1, read=99_999, output=1), NOW).total == 100_000 + 99_999 * 10_000 + 500_000
    )
    assert (
        bill(haiku, Usage(fresh=2, read=99_999, output=1), NOW).total
        == 2 * 500_000 + 99_999 * 50_000 + 2_500_000
    )


def test_a_model_without_a_price_costs_nothing() -> None:
    assert bill(catalogue().find("other", Api.ANTHROPIC), Usage(10, output=10), NOW) == Bill(())


def test_a_sum_of_many_small_bills_is_exact() -> None:
    flash = catalogue().find("deepseek-flash", Api.DEEPSEEK)
    assert sum(bill(flash, Usage(read=1), NOW).total for _ in range(1000)) == 3_000_000


def test_storage_is_paid_by_token_and_hour() -> None:
    pro = catalogue().find("gemini-2.5-pro", Api.GEMINI)
    assert storage(pro, 3000, 3600, NOW).lines == (Line("cache_storage", 3000, 4_500_000, 13_500_000_000),)
    assert storage(pro, 3000, 1800, NOW).total == 6_750_000_000
    assert storage(pro, 1, 0.001, NOW).total == 2  # 1.25, and what is begun is paid
    assert storage(pro, 3000, -1800, NOW).total == -6_750_000_000
    assert storage(catalogue().find("other", Api.GEMINI), 1, 1, NOW) == Bill(())


def test_the_ledger_adds_up_what_each_key_uses_of_each_model() -> None:
    ledger = Ledger(Table())
    usage = Usage(fresh=1, read=2, written={"5m": 3}, output=4, reasoning=1)
    for key, model in (("b", "one"), ("a", "one"), ("a", "two"), ("a", "one")):
        ledger.add(key, model, usage, bill(OPUS, usage, NOW))
    each = bill(OPUS, usage, NOW).total
    assert list(ledger) == [
        Account("a", "one", 2, Usage(2, 4, {"5m": 6}, 8, 2), 2 * each),
        Account("a", "two", 1, usage, each),
        Account("b", "one", 1, usage, each),
    ]


def test_the_ledger_takes_what_is_no_answer() -> None:
    ledger = Ledger(Table())
    ledger.charge("a", "one", Bill((Line("cache_storage", 1, 5, 5),)))
    ledger.charge("a", "one", Bill((Line("cache_storage", 1, 5, -2),)))
    assert list(ledger) == [Account("a", "one", 0, Usage(), 3)]


def test_a_key_is_known_by_a_fingerprint_that_does_not_hold_it() -> None:
    assert fingerprint("sk-secret") == fingerprint("sk-secret")
    assert fingerprint("sk-secret") != fingerprint("sk-other")
    assert "secret" not in fingerprint("sk-secret")
    assert len(fingerprint("sk-secret")) == 12
    assert fingerprint("") == "-"
