"""Settings: from variables, from values, and error messages for invalid ones."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pydantic import SecretStr, ValidationError

from peripety.core.config import (
    Config,
    LogFormat,
    LogLevel,
    NarratorProfile,
    ProviderLimits,
    ProviderName,
    split_address,
)
from peripety.errors import InvalidArgumentError


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in os.environ:
        if name.startswith(("PERIPETY_", "OPENAI_", "MODEL_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))


def test_without_any_variable_everything_works_offline_and_for_this_machine_only(tmp_path: Path) -> None:
    config = Config.from_environment()
    assert config.model_provider is ProviderName.OFFLINE
    assert config.listen.startswith("127.0.0.1:")
    assert config.database_url.get_secret_value() == f"sqlite:///{tmp_path}/peripety/peripety.db"
    assert not config.insecure


def test_a_misspelt_variable_is_named_with_the_one_that_is_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PERIPETY_LOGLEVEL", "PERIPETY_LISTEN", "PERIPETY_DEBUG", "PERIPETY_OF_ANOTHER_PROGRAM"):
        monkeypatch.setenv(name, "127.0.0.1:0")
    assert Config.find_misspelt_variables() == {"PERIPETY_LOGLEVEL": "PERIPETY_LOG_LEVEL"}


def test_every_variable_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    variables = {
        "MODEL_PROVIDER": "generic",
        "OPENAI_API_BASE": "http://127.0.0.1:1/v1",
        "OPENAI_API_KEY": "k",
        "ANTHROPIC_API_BASE": "http://127.0.0.1:2",
        "ANTHROPIC_API_KEY": "k2",
        "GEMINI_API_BASE": "http://127.0.0.1:3",
        "GEMINI_API_KEY": "k3",
        "GOOGLE_API_KEY": "k7",
        "DEEPSEEK_API_BASE": "http://127.0.0.1:4",
        "DEEPSEEK_API_KEY": "k4",
        "OLLAMA_API_BASE": "http://127.0.0.1:5",
        "OLLAMA_API_KEY": "k5",
        "AZURE_API_BASE": "http://127.0.0.1:6",
        "AZURE_API_KEY": "k6",
        "SCRIPTED_API_BASE": "http://127.0.0.1:7",
        "SCRIPTED_API_KEY": "k8",
        "PERIPETY_SCRIPT": "a/script.toml",
        "MODEL_NAME": "m",
        "PERIPETY_MODELS": "a/models.toml",
        "PERIPETY_PROFILE": "local-lite",
        "PERIPETY_NARRATOR_ROOM_BYTES": "5000",
        "PERIPETY_NARRATOR_SECONDS": "45",
        "PERIPETY_LIMITS": '{"openai/m": {"concurrency": 3}}',
        "PERIPETY_DAILY_BUDGET": '{"max_tokens": 7, "max_cost_dollars": 2.5}',
        "PERIPETY_BREAKER_FAILURES": "4",
        "PERIPETY_BREAKER_OPEN_SECONDS": "1.5",
        "PERIPETY_BREAKER_SUCCESSES": "1",
        "PERIPETY_PROVIDER_CONNECT_SECONDS": "1",
        "PERIPETY_PROVIDER_FIRST_EVENT_SECONDS": "2",
        "PERIPETY_PROVIDER_PAUSE_SECONDS": "3",
        "PERIPETY_PROVIDER_TOTAL_SECONDS": "4.5",
        "PERIPETY_DATABASE_URL": "sqlite:////a/b.db",
        "PERIPETY_REDIS_URL": "rediss://:a@b:1/2",
        "PERIPETY_LISTEN": "[::1]:5",
        "PERIPETY_EDGE_LISTEN": "[::1]:6",
        "PERIPETY_EDGE_HOSTS": "a.example,b.example",
        "PERIPETY_EDGE_ORIGINS": "https://a.example",
        "PERIPETY_EDGE_TOKEN": "k9",
        "PERIPETY_EDGE_ENFORCEMENT_POINTS": "a.example:0, [::1]:7",
        "PERIPETY_SERVICES_ADDRESS": "services:4",
        "PERIPETY_GATEWAY_ADDRESS": "gateway:1",
        "PERIPETY_SCENARIOS_ADDRESS": "scenarios:2",
        "PERIPETY_POLICIES_ADDRESS": "policies:3",
        "PERIPETY_TESTGEN_COMMANDS": "true",
        "PERIPETY_TESTGEN_UNFENCED": "true",
        "PERIPETY_TESTGEN_TASKS": "a/tasks",
        "PERIPETY_INSECURE": "1",
        "PERIPETY_RESPONSE_CACHE_MEMORY_BYTES": "1",
        "PERIPETY_RESPONSE_CACHE_DISK_BYTES": "0",
        "PERIPETY_RESPONSE_CACHE_TTL_SECONDS": "0.5",
        "PERIPETY_LOG_LEVEL": "debug",
        "PERIPETY_LOG_FORMAT": "json",
        "PERIPETY_MAX_MESSAGE_BYTES": "100000",
        "PERIPETY_MAX_CONCURRENT_CALLS": "9",
        "PERIPETY_DEFAULT_DEADLINE_SECONDS": "2.5",
        "PERIPETY_DRAIN_SECONDS": "0",
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    config = Config.from_environment()
    assert len(variables) == len(Config.model_fields)
    assert config.limits["openai/m"] == ProviderLimits(concurrency=3)
    secrets = {name: value.get_secret_value() for name, value in config if isinstance(value, SecretStr)}
    assert secrets == {
        name.removeprefix("PERIPETY_").lower(): value
        for name, value in variables.items()
        if name.endswith(("_API_KEY", "_URL", "_TOKEN"))
    }
    assert config.model_dump(exclude={*secrets, "limits"}) == {
        "model_provider": ProviderName.GENERIC,
        "openai_api_base": "http://127.0.0.1:1/v1",
        "anthropic_api_base": "http://127.0.0.1:2",
        "gemini_api_base": "http://127.0.0.1:3",
        "deepseek_api_base": "http://127.0.0.1:4",
        "ollama_api_base": "http://127.0.0.1:5",
        "azure_api_base": "http://127.0.0.1:6",
        "scripted_api_base": "http://127.0.0.1:7",
        "script": Path("a/script.toml"),
        "model_name": "m",
        "models": Path("a/models.toml"),
        "profile": NarratorProfile.LOCAL_LITE,
        "narrator_room_bytes": 5_000,
        "narrator_seconds": 45.0,
        "daily_budget": {"max_calls": None, "max_tokens": 7, "max_pico_dollars": 25 * 10**11},
        "breaker_failures": 4,
        "breaker_open_seconds": 1.5,
        "breaker_successes": 1,
        "provider_connect_seconds": 1.0,
        "provider_first_event_seconds": 2.0,
        "provider_pause_seconds": 3.0,
        "provider_total_seconds": 4.5,
        "listen": "[::1]:5",
        "edge_listen": "[::1]:6",
        "edge_hosts": ("a.example", "b.example"),
        "edge_origins": ("https://a.example",),
        "edge_enforcement_points": ("a.example:0", "[::1]:7"),
        "services_address": "services:4",
        "gateway_address": "gateway:1",
        "scenarios_address": "scenarios:2",
        "policies_address": "policies:3",
        "testgen_commands": True,
        "testgen_unfenced": True,
        "testgen_tasks": Path("a/tasks"),
        "insecure": True,
        "response_cache_memory_bytes": 1,
        "response_cache_disk_bytes": 0,
        "response_cache_ttl_seconds": 0.5,
        "log_level": LogLevel.DEBUG,
        "log_format": LogFormat.JSON,
        "max_message_bytes": 100_000,
        "max_concurrent_calls": 9,
        "default_deadline_seconds": 2.5,
        "drain_seconds": 0.0,
    }


@pytest.mark.parametrize(
    ("variable", "value", "hint"),
    [
        ("MODEL_PROVIDER", "elsewhere", "offline, openai, openai-responses, anthropic"),
        ("MODEL_PROVIDER", "Offline", "offline, openai, openai-responses, anthropic"),
        ("OPENAI_API_BASE", "ftp://a", "http"),
        ("OPENAI_API_BASE", "https://user:word@a", "without credentials"),
        ("PERIPETY_LIMITS", "5", "a JSON object"),
        ("PERIPETY_LIMITS", "{", "line 1 column 2"),
        ("PERIPETY_LIMITS", '{"elsewhere": {}}', "offline, openai, openai-responses, anthropic"),
        ("PERIPETY_LIMITS", '{"openai": {"concurrency": 0}}', "openai.concurrency: Input should be greater"),
        ("PERIPETY_LIMITS", '{"openai": {"requests": 5}}', "openai.requests: Extra inputs"),
        ("PERIPETY_BREAKER_FAILURES", "0", "greater than or equal to 1"),
        ("PERIPETY_DATABASE_URL", "postgresql://a", "postgresql://user:password@host:port/name"),
        ("PERIPETY_DATABASE_URL", "postgresql://a:b@c@d/e", "%40 for @"),
        ("PERIPETY_DATABASE_URL", "mysql://a/b", "postgresql://user:password@host:port/name"),
        ("PERIPETY_DATABASE_URL", "sqlite:///:memory:", "a file"),
        ("PERIPETY_REDIS_URL", "http://a", "redis://user:password@host:port/number"),
        ("PERIPETY_REDIS_URL", "redis://:a@b@c", "%40 for @"),
        ("PERIPETY_EDGE_ENFORCEMENT_POINTS", "a:1, https://b", "host:port"),
        ("PERIPETY_LISTEN", "50051", "host:port"),
        ("PERIPETY_GATEWAY_ADDRESS", "http://a:1", "host:port"),
        ("PERIPETY_INSECURE", "perhaps", "boolean"),
        ("PERIPETY_LOG_LEVEL", "loud", "debug, info, warning, error"),
        ("PERIPETY_MAX_MESSAGE_BYTES", "-1", "greater than or equal to 65536"),
        ("PERIPETY_DRAIN_SECONDS", "soon", "number"),
    ],
)
def test_a_bad_value_is_refused_with_the_name_of_its_variable(
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    value: str,
    hint: str,
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(InvalidArgumentError, match=variable) as caught:
        Config.from_environment()
    assert [violation.field for violation in caught.value.violations] == [variable]
    assert hint in caught.value.message


@pytest.mark.parametrize(
    ("dollars", "pico"),
    [("5", 5 * 10**12), ("0.1", 10**11), ("0.000000000001", 1), ("1e-3", 10**9)],
)
def test_money_is_read_exactly(monkeypatch: pytest.MonkeyPatch, dollars: str, pico: int) -> None:
    monkeypatch.setenv("PERIPETY_LIMITS", f'{{"openai": {{"dollars_per_minute": {dollars}}}}}')
    assert Config.from_environment().limits["openai"].pico_dollars_per_minute == pico


@pytest.mark.parametrize(
    ("dollars", "hint"),
    [
        ("0.0000000000001", "12 decimals"),
        ('"1"', "number of dollars"),
        ("0", "greater"),
        ("true", "number of dollars"),
        ("NaN", "number of dollars"),
    ],
)
def test_money_that_cannot_be_read_exactly_is_refused(
    monkeypatch: pytest.MonkeyPatch,
    dollars: str,
    hint: str,
) -> None:
    monkeypatch.setenv("PERIPETY_LIMITS", f'{{"openai": {{"dollars_per_minute": {dollars}}}}}')
    with pytest.raises(InvalidArgumentError, match=f"PERIPETY_LIMITS openai.dollars_per_minute.*{hint}"):
        Config.from_environment()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, 60),
        ({"generic": ProviderLimits(concurrency=1)}, 60),
        ({"openai": ProviderLimits(requests_per_minute=500)}, 500),
        ({"openai": ProviderLimits()}, None),
    ],
)
def test_a_provider_that_is_not_named_keeps_its_usual_limits(
    given: dict[str, ProviderLimits],
    expected: int | None,
) -> None:
    assert Config(limits=given).limits["openai"].requests_per_minute == expected


def test_the_usual_limits_are_those_of_small_accounts() -> None:
    usual = {name: limits.requests_per_minute for name, limits in Config().limits.items()}
    assert usual == {"anthropic": 50, "gemini": 60, "deepseek": 100, "openai": 60}


def test_a_bad_value_is_not_repeated_because_it_may_be_a_key_in_the_wrong_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_BASE", "sk-canary-123")
    with pytest.raises(InvalidArgumentError) as caught:
        Config.from_environment()
    assert "canary" not in repr((caught.value.message, caught.value.violations, caught.value.__cause__))


def test_the_generic_provider_needs_a_server_to_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_PROVIDER", "generic")
    with pytest.raises(InvalidArgumentError, match="OPENAI_API_BASE"):
        Config.from_environment()


def test_an_empty_variable_counts_as_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_PROVIDER", "")
    monkeypatch.setenv("OPENAI_API_KEY", "")
    config = Config.from_environment()
    assert config.model_provider is ProviderName.OFFLINE
    assert config.openai_api_key is None


def test_a_value_given_directly_wins_over_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERIPETY_LISTEN", "127.0.0.1:1")
    assert Config.from_environment(listen="127.0.0.1:2").listen == "127.0.0.1:2"


def test_explicit_values_never_look_at_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERIPETY_LISTEN", "nonsense")
    assert Config().listen == Config(listen="127.0.0.1:50051").listen


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Config().listen = "127.0.0.1:1"


def test_no_secret_is_in_any_text_form_of_the_settings() -> None:
    config = Config(
        openai_api_key=SecretStr("sk-canary-123"),
        database_url=SecretStr("postgresql://a:canary@b/c"),
        redis_url=SecretStr("redis://:canary@b"),
    )
    assert "canary" not in f"{config} {config!r} {config.model_dump()} {config.model_dump_json()}"


def test_a_bad_value_is_not_in_the_error_that_refuses_it() -> None:
    with pytest.raises(ValidationError) as caught:
        Config(database_url=SecretStr("postgresql://a:b@c@canary"), openai_api_base="sk-canary-123")
    assert "canary" not in f"{caught.value} {caught.value!r}"


@pytest.mark.parametrize(
    ("text", "parts"),
    [("127.0.0.1:0", ("127.0.0.1", 0)), ("a-b.c:65535", ("a-b.c", 65535)), ("[::1]:1", ("::1", 1))],
)
def test_an_address_is_split_into_host_and_port(text: str, parts: tuple[str, int]) -> None:
    assert split_address(text) == parts


@pytest.mark.parametrize("text", ["", "a", "a:", ":1", "a:65536", "a:-1", "::1:1", "a b:1", "a/b:1", "[a:1"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="host:port"):
        split_address(text)
