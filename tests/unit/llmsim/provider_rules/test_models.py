"""Model cards: lookup, contents and prices over time.

Tokens: counts and boundaries.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peripety.llmsim.provider_rules import models
from peripety.llmsim.provider_rules.models import CacheFamily, load_models
from peripety.llmsim.types import Api


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("name", "api", "family"),
    [
        ("claude-opus-5-5", Api.ANTHROPIC, CacheFamily.ANTHROPIC),
        ("claude-opus-5-5-20260922", Api.ANTHROPIC, CacheFamily.ANTHROPIC),
        ("claude-test", Api.ANTHROPIC, CacheFamily.ANTHROPIC),
        ("gpt-4o", Api.OPENAI_CHAT, CacheFamily.OPENAI_AUTOMATIC),
        ("gpt-5.5", Api.OPENAI_RESPONSES, CacheFamily.OPENAI_AUTOMATIC),
        ("gpt-5.6-sol", Api.OPENAI_CHAT, CacheFamily.OPENAI_BREAKPOINTS),
        ("gpt-6.1-terra-2026-10-01", Api.OPENAI_RESPONSES, CacheFamily.OPENAI_BREAKPOINTS),
        ("gpt-7", Api.OPENAI_CHAT, CacheFamily.OPENAI_AUTOMATIC),
        ("any model", Api.OPENAI_CHAT, CacheFamily.OPENAI_AUTOMATIC),
        ("deepseek-flash", Api.DEEPSEEK, CacheFamily.DEEPSEEK),
        ("gemini-4-argon", Api.GEMINI, CacheFamily.GEMINI),
        ("gemini-1.5-pro", Api.GEMINI, CacheFamily.NONE),
        ("llama3.2:latest", Api.OLLAMA, CacheFamily.NONE),
        ("claude-opus-5-5", Api.IN_PROCESS, CacheFamily.NONE),
    ],
)
def test_a_model_of_any_name_is_cached_by_the_rules_of_its_kind(
    name: str,
    api: Api,
    family: CacheFamily,
) -> None:
    model = load_models().find(name, api)
    assert model.name == name
    assert model.cache.family is family


@pytest.mark.parametrize("api", list(Api))
def test_every_api_has_a_card_for_unknown_names_which_costs_nothing(api: Api) -> None:
    assert load_models().find("something else", api).price_for(1000, at("2026-11-01")) is None


@pytest.mark.parametrize("api", list(Api))
def test_the_listed_models_are_found_under_their_own_names(api: Api) -> None:
    listed = load_models().models_of(api)
    assert len({model.name for model in listed}) == len(listed)
    assert all(load_models().find(model.name, api) == model for model in listed)


def test_more_models_than_are_remembered_are_found_as_well() -> None:
    names = [f"model {number}" for number in range(5000)]
    assert [load_models().find(name, Api.OLLAMA).name for name in names] == names


@pytest.mark.parametrize(
    ("model", "takes", "refuses"),
    [
        ("claude-opus-5-5", {"system_messages"}, {"forced_tools", "prefill", "sampling", "no_reasoning"}),
        ("claude-fable-5-1", {"system_messages"}, {"forced_tools", "prefill", "sampling", "no_reasoning"}),
        ("claude-sonnet-5-5", {"no_reasoning"}, {"forced_tools", "prefill", "sampling"}),
        ("claude-sonnet-5", {"forced_tools"}, {"system_messages", "prefill", "sampling"}),
        ("claude-haiku-5-5", {"system_messages", "forced_tools", "no_reasoning"}, {"sampling"}),
        ("claude-opus-4-8", {"system_messages", "forced_tools"}, {"prefill", "sampling"}),
        ("claude-sonnet-4-5", {"forced_tools", "prefill", "sampling", "no_reasoning"}, {"system_messages"}),
    ],
)
def test_what_anthropic_models_take(model: str, takes: set[str], refuses: set[str]) -> None:
    card = load_models().find(model, Api.ANTHROPIC).takes
    assert {name for name in takes if not getattr(card, name)} == set()
    assert {name for name in refuses if getattr(card, name)} == set()


@pytest.mark.parametrize(
    ("model", "reasoning"),
    [("gpt-4o", False), ("gpt-4.1-mini", False), ("o3", True), ("gpt-6-sol", True)],
)
def test_openai_models_that_reason_take_no_sampling(model: str, reasoning: bool) -> None:
    card = load_models().find(model, Api.OPENAI_CHAT).takes
    assert (card.reasoning, card.sampling) == (reasoning, not reasoning)


def test_only_later_gemini_models_insist_on_signatures() -> None:
    found = {
        name: load_models().find(name, Api.GEMINI).takes.unsigned_calls
        for name in ("gemini-2.5-pro", "gemini-3-pro-preview", "gemini-4-argon", "gemini-4-other")
    }
    assert found == {
        "gemini-2.5-pro": True,
        "gemini-3-pro-preview": False,
        "gemini-4-argon": False,
        "gemini-4-other": False,
    }


@pytest.mark.parametrize(
    ("model", "api", "tokens", "when", "expected"),
    [
        # pico-dollars for each fresh, read and written input token
        ("claude-opus-5-5", Api.ANTHROPIC, 10, "2026-11-22", (4_000_000, 200_000, 20_000_000)),
        ("claude-haiku-5-5", Api.ANTHROPIC, 100_000, "2026-11-22", (100_000, 10_000, 500_000)),
        ("claude-haiku-5-5", Api.ANTHROPIC, 100_001, "2026-11-22", (500_000, 50_000, 2_500_000)),
        ("claude-sonnet-5-5", Api.ANTHROPIC, 10, "2026-10-06T23:59:59", (2_000_000, 200_000, 10_000_000)),
        ("claude-sonnet-5-5", Api.ANTHROPIC, 10, "2026-10-07", (2_000_000, 100_000, 10_000_000)),
        ("claude-fable-5-1", Api.ANTHROPIC, 10, "2026-11-22", (10_000_000, 250_000, 50_000_000)),
        ("gpt-5.6-sol", Api.OPENAI_CHAT, 272_000, "2026-08-20", (5_000_000, 500_000, 30_000_000)),
        ("gpt-5.6-sol", Api.OPENAI_CHAT, 272_001, "2026-08-20", (10_000_000, 1_000_000, 45_000_000)),
        ("gpt-5.6-sol", Api.OPENAI_CHAT, 272_000, "2026-08-21", (4_000_000, 400_000, 20_000_000)),
        ("gpt-5.6-sol", Api.OPENAI_CHAT, 272_001, "2026-08-21", (8_000_000, 800_000, 30_000_000)),
        ("gpt-6.1-sol", Api.OPENAI_CHAT, 10, "2026-11-22", (2_000_000, 100_000, 10_000_000)),
        ("gpt-4o", Api.OPENAI_CHAT, 10, "2026-11-22", (2_500_000, 1_250_000, 10_000_000)),
        ("gemini-4-argon", Api.GEMINI, 10, "2026-11-30", (2_000_000, 100_000, 10_000_000)),
        ("gemini-4-argon", Api.GEMINI, 10, "2026-12-01", (4_000_000, 200_000, 20_000_000)),
        ("gemini-2.5-pro", Api.GEMINI, 200_001, "2026-11-22", (2_500_000, 250_000, 15_000_000)),
        # one token read costs three nano-dollars off the peak
        ("deepseek-flash", Api.DEEPSEEK, 10, "2026-11-23T00:59", (150_000, 3_000, 600_000)),
        ("deepseek-flash", Api.DEEPSEEK, 10, "2026-11-23T01:00", (300_000, 6_000, 1_200_000)),
        ("deepseek-flash", Api.DEEPSEEK, 10, "2026-11-23T03:59", (300_000, 6_000, 1_200_000)),
        ("deepseek-flash", Api.DEEPSEEK, 10, "2026-11-23T04:00", (150_000, 3_000, 600_000)),
        ("deepseek-flash", Api.DEEPSEEK, 10, "2026-11-23T09:59", (300_000, 6_000, 1_200_000)),
        ("deepseek-flash", Api.DEEPSEEK, 10, "2026-11-23T10:00", (150_000, 3_000, 600_000)),
        ("deepseek-flash", Api.DEEPSEEK, 10, "2026-11-22T02:00", (150_000, 3_000, 600_000)),  # a Sunday
        ("deepseek-v4-pro", Api.DEEPSEEK, 10, "2026-11-23T02:00", (1_320_000, 44_000, 3_960_000)),
        ("deepseek-v4-pro", Api.DEEPSEEK, 10, "2026-08-10T02:00", (435_000, 3_625, 870_000)),
    ],
)
def test_what_a_token_costs(
    model: str,
    api: Api,
    tokens: int,
    when: str,
    expected: tuple[int, int, int],
) -> None:
    price = load_models().find(model, api).price_for(tokens, at(when))
    assert price is not None
    assert (price.input, price.read, price.output) == expected


def test_before_a_models_first_date_its_first_price_holds() -> None:
    price = load_models().find("o3", Api.OPENAI_CHAT).price_for(10, at("2020-01-01"))
    assert price is not None
    assert price.input == 10_000_000


@pytest.mark.parametrize(
    ("model", "api", "written"),
    [
        ("claude-opus-5-5", Api.ANTHROPIC, {"5m": 5_000_000, "1h": 8_000_000}),
        ("gpt-6.1-sol", Api.OPENAI_CHAT, {"30m": 2_500_000, "12h": 2_500_000}),
        ("gpt-4o", Api.OPENAI_CHAT, {}),
        ("deepseek-flash", Api.DEEPSEEK, {}),
        ("gemini-2.5-pro", Api.GEMINI, {}),
    ],
)
def test_what_writing_a_token_costs(model: str, api: Api, written: dict[str, int]) -> None:
    price = load_models().find(model, api).price_for(10, at("2026-11-22"))
    assert price is not None
    assert price.written == written


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", 0), ("a", 1), ("four", 1), ("fives", 2), ("ééé", 2), ("日本語", 3), ("🙂", 1), ("\ud800", 1)],
)
def test_a_token_is_four_bytes_of_utf_8(text: str, expected: int) -> None:
    assert models.count_tokens(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello, you", ("Hell", "o, y", "ou")),
        ("日本語を", ("日", "本", "語を")),
        ("a🙂b🙂", ("a", "🙂b", "🙂")),
    ],
)
def test_no_character_is_cut(text: str, expected: tuple[str, ...]) -> None:
    assert models.split_tokens(text) == expected


@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=60))
def test_pieces_are_the_text_and_as_many_as_are_counted(text: str) -> None:
    cut = models.split_tokens(text)
    assert "".join(cut) == text
    assert len(cut) == models.count_tokens(text)
    assert all(cut)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=9)))
def test_shares_add_up_to_the_whole_however_it_is_divided(parts: list[str]) -> None:
    assert sum(models.token_shares(parts)) == models.count_tokens("".join(parts))


def test_each_token_brings_one() -> None:
    assert list(models.token_shares(models.split_tokens("日本語を話す a🙂b🙂"))) == [1] * models.count_tokens(
        "日本語を話す a🙂b🙂",
    )
