"""`peripety models`: the table and the lines of JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner, Result

from peripety.cli.app import app
from peripety.errors import InvalidArgumentError
from peripety.gateway.models.catalog import ModelCatalog

if TYPE_CHECKING:
    from pathlib import Path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["models", *arguments])


def cells(result: Result, name: str) -> list[str]:
    """The line of a model in the table, by words."""
    (line,) = [line for line in result.stdout.splitlines() if line.split()[:1] == [name]]
    return line.split()


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "mine.toml"
    monkeypatch.setenv("PERIPETY_MODELS", str(path))
    return path


def test_the_table_names_limits_prices_and_the_cache() -> None:
    result = run("--provider", "anthropic")
    assert result.exit_code == 0
    figures = " ".join(cells(result, "anthropic/claude-opus-5-5")[1:9])
    assert figures == "1,000,000 128,000 4.00 20.00 0.20 5.00 / 8.00"
    assert "breakpoints from 512 tokens for 5m / 1h" in result.stdout
    assert "openai/" not in result.stdout


def test_a_tier_and_a_peak_have_a_line_of_their_own() -> None:
    assert "  from 100,001 tokens" in run("--provider", "anthropic").stdout
    lines = run("--provider", "deepseek").stdout.splitlines()
    assert [line.split()[-3:] for line in lines if "at peak hours" in line] == [
        ["0.30", "1.20", "0.006"],
        ["1.32", "3.96", "0.044"],
    ]


def test_json_has_a_line_for_each_model_of_all_providers() -> None:
    lines = [json.loads(line) for line in run("--json").stdout.splitlines()]
    assert [(line["provider"], line["name"]) for line in lines] == [
        (model.provider, model.name) for model in ModelCatalog.load().models()
    ]
    (one,) = [line for line in lines if line["name"] == "gpt-4o-mini"]
    assert one["prices"][0]["input"] == 150_000
    assert one["capabilities"] == sorted(one["capabilities"])


def test_ones_own_models_are_listed(mine: Path) -> None:
    mine.write_text(
        '[[model]]\nprovider = "generic"\nname = "alpha"\ncontext_tokens = 4096\n'
        "prices = [{ input = 1, output = 2, cache_read = 0.0625 }]",
        "utf-8",
    )
    result = run("--provider", "generic")
    assert cells(result, "generic/alpha") == [
        *("generic/alpha", "4,096", "0"),
        *("1.00", "2.00", "0.0625"),
        *("none", "native_schema", "seed", "tools"),
    ]


def test_a_bad_file_of_models_is_an_error_that_names_it(mine: Path) -> None:
    mine.write_text("[[models]]", "utf-8")
    error = run().exception
    assert isinstance(error, InvalidArgumentError)
    assert str(error).startswith(f"model file {mine}: models: unknown key")


def test_a_provider_without_named_models_is_an_error_that_says_who_has_some() -> None:
    result = run("--provider", "ollama")
    assert result.exit_code == 2
    assert "anthropic, deepseek, gemini, openai" in result.stderr.replace("\n", " ")
