"""Files of models: what a user's own file adds and corrects, and what is said of a bad one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from peripety.errors import InvalidArgumentError
from peripety.gateway.models.catalog import ModelCatalog, ModelFiles
from peripety.gateway.models.model_data import Capability

if TYPE_CHECKING:
    from pathlib import Path


ANY_OTHER = """
[[model]]
provider = "p"
name = "*"
capabilities = ["tools"]
default_output_tokens = 100
cache = { kind = "breakpoints", minimum_tokens = 10, ttls = { short = 300 } }
"""


def with_file(tmp_path: Path, text: str) -> ModelCatalog:
    path = tmp_path / "mine.toml"
    path.write_text(text, "utf-8")
    return ModelCatalog.load(path)


def read(*texts: str) -> ModelCatalog:
    cards = ModelFiles()
    for index, text in enumerate(texts):
        cards.add(text, f"{index}.toml")
    return ModelCatalog(cards.models())


def test_a_file_adds_a_model_to_a_provider(tmp_path: Path) -> None:
    catalogue = with_file(
        tmp_path,
        """
        [[model]]
        provider = "generic"
        name = "alpha"
        names = ["alpha-*"]
        context_tokens = 32_768
        prices = [{ input = 0.05, output = 0.2, cache_read = 0 }]
        """,
    )
    found = catalogue.find("generic", "alpha-7b")
    assert (found.name, found.context_tokens, found.prices[0].input) == ("alpha", 32_768, 50_000)
    assert found.capabilities == ModelCatalog.load().find("generic", None).capabilities
    assert [model.name for model in catalogue.models("generic")] == ["alpha"]


def test_a_file_corrects_what_comes_with_the_version(tmp_path: Path) -> None:
    before = ModelCatalog.load().find("anthropic", "claude-opus-4-7")
    catalogue = with_file(
        tmp_path,
        """
        [[model]]
        provider = "anthropic"
        name = "claude-opus-4-7"
        cache = { minimum_tokens = 512 }
        """,
    )
    found = catalogue.find("anthropic", "claude-opus-4-7")
    assert (before.cache.minimum_tokens, found.cache.minimum_tokens) == (2048, 512)
    assert (found.prices, found.released, found.traits) == (before.prices, before.released, before.traits)
    assert len(catalogue.models()) == len(ModelCatalog.load().models())


def test_names_of_a_later_file_go_before_those_of_an_earlier_one() -> None:
    catalogue = read(
        ANY_OTHER + '[[model]]\nprovider = "p"\nname = "a"\nnames = ["a*"]\n',
        '[[model]]\nprovider = "p"\nname = "b"\nnames = ["ab*"]\n',
    )
    assert [catalogue.find("p", name).name for name in ("abc", "acc")] == ["b", "a"]


def test_a_card_takes_over_all_but_names_and_dates() -> None:
    catalogue = read(
        ANY_OTHER
        + """
        [[model]]
        provider = "p"
        name = "a"
        names = ["first"]
        released = 2026-01-01
        context_tokens = 1000
        traits = { sampling = false, strict_schema = true }
        [[model]]
        provider = "p"
        name = "b"
        like = "a"
        traits = { sampling = true }
        """,
    )
    found = catalogue.find("p", "b")
    assert (found.names, found.released, found.context_tokens) == ((), None, 1000)
    assert (found.traits.sampling, found.traits.strict_schema) == (True, True)
    assert found.capabilities == {Capability.TOOLS}


CARD = ANY_OTHER + '[[model]]\nprovider = "p"\nname = "a"\n'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[[model]", "is not TOML: "),
        ("[models]", "models: unknown key; a model file has only [[model]] tables"),
        ("model = 1", "model: must be an array of tables; write [[model]]"),
        ("model = [1]", "model[0].provider: is required, as text"),
        ('[[model]]\nprovider = "p"', "model[0].name: is required, as text"),
        (CARD + "like = 1", "model[1].like: must be the name of a model of the same provider"),
        (CARD + 'like = "b"', "p/a: like: unknown model p/b; add its entry"),
        (CARD + 'like = "a"', "p/a: like: circular reference; remove it"),
        ('[[model]]\nprovider = "q"\nname = "a"', "q/a: like: unknown model q/*; add the provider's entry"),
        (CARD + ANY_OTHER, "p/*: duplicate model; merge the two entries"),
        (CARD + "price = 1", "p/a: price: Unexpected keyword argument"),
        (CARD + "context_tokens = -1", "p/a: context_tokens: Input should be greater than or equal to 0"),
        (CARD + 'capabilities = ["flies"]', "p/a: capabilities[0]: Input should be 'tools'"),
        (CARD + 'traits = { length_field = "n" }', "p/a: traits.length_field: Input should be 'max_tokens'"),
        (CARD + "cache = { lifetimes = {} }", "p/a: cache.lifetimes: Unexpected keyword argument"),
        (CARD + "max_output_tokens = 99", "p/a: default_output_tokens: exceeds max_output_tokens"),
        (
            CARD + "prices = [{ input = 1, output = 1 }]",
            "p/a: prices[0].cache_read: Field required",
        ),
        (
            CARD + 'prices = [{ input = "1", output = 1, cache_read = 1 }]',
            "p/a: prices[0].input: must be a number of dollars for a million tokens",
        ),
        (
            CARD + "prices = [{ input = 0.0000001, output = 1, cache_read = 1 }]",
            "p/a: prices[0].input: must have at most 6 decimals",
        ),
        (
            CARD + "prices = [{ input = nan, output = 1, cache_read = 1 }]",
            "p/a: prices[0].input: must have at most 6 decimals",
        ),
        (
            CARD + "prices = [{ input = 1, output = -1, cache_read = 1 }]",
            "p/a: prices[0].output: Input should be greater than or equal to 0",
        ),
        (
            CARD + "prices = [{ input = 1, output = 1, cache_read = 1, cache_write = { long = 2 } }]",
            "p/a: prices[0].cache_write: 'long' is not in cache.ttls",
        ),
        (
            CARD + "prices = [{ min_input_tokens = 5, input = 1, output = 1, cache_read = 1 }]",
            "p/a: prices: no day lacks a price for small prompts at any hour",
        ),
        (
            CARD
            + "prices = [{ input = 1, output = 1, cache_read = 1 },"
            + " { input = 2, output = 2, cache_read = 2 }]",
            "p/a: prices: two prices from no day on for 0 tokens; remove one",
        ),
        (
            CARD
            + "prices = [{ input = 1, output = 1, cache_read = 1 },"
            + "{ input = 2, output = 1, cache_read = 1, peak = { weekdays = [0], hours = [] } }]",
            "p/a: prices[1].peak.weekdays[0]: Input should be greater than or equal to 1",
        ),
    ],
)
def test_a_bad_file_is_an_error_that_names_file_model_and_key(
    tmp_path: Path,
    text: str,
    problem: str,
) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        with_file(tmp_path, text)
    assert str(caught.value).startswith(f"model file {tmp_path / 'mine.toml'}: {problem}")
    assert caught.value.code == "BAD_CONFIGURATION"


def test_a_file_that_is_not_there_is_an_error_that_names_the_variable(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"PERIPETY_MODELS: cannot read .*gone: No such file"):
        ModelCatalog.load(tmp_path / "gone")


def test_a_file_that_is_not_text_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidArgumentError, match="not UTF-8"):
        ModelCatalog.load(path)
