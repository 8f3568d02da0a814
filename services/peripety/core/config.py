"""Settings of a process: read once, frozen, passed as a parameter.

`Config.from_environment()` reads the environment; an invalid value raises an error that names its variable.
`Config(...)` takes values and ignores the environment, so a test never depends on the shell it runs in.
"""

from __future__ import annotations

import ipaddress
import json
import os
import re
from decimal import Decimal
from difflib import get_close_matches
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, TypeAlias

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)

from peripety.errors import FieldViolation, InvalidArgumentError

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


__all__ = [
    "Config",
    "DailyBudget",
    "LogFormat",
    "LogLevel",
    "NarratorProfile",
    "ProviderLimits",
    "ProviderName",
    "describe_listen_error",
    "is_loopback",
    "split_address",
]

_PICO_DOLLARS = 10**12


def _pico_dollars(dollars: Any) -> Any:
    if isinstance(dollars, bool) or not isinstance(dollars, int | Decimal):
        raise ValueError("must be a number of dollars")  # noqa: TRY004 - the library turns this one into an answer
    pico = dollars * _PICO_DOLLARS
    if isinstance(pico, Decimal) and (not pico.is_finite() or pico != pico.to_integral_value()):
        raise ValueError("must have at most 12 decimals")
    return int(pico)


_Limit: TypeAlias = Annotated[int, Field(ge=1)] | None
_Dollars: TypeAlias = Annotated[int, BeforeValidator(_pico_dollars), Field(ge=1)] | None


class ProviderLimits(BaseModel):
    """Rate limits per credential and model family; None means no limit.

    Attributes:
        requests_per_minute: requests, retries included.
        input_tokens_per_minute: tokens of prompts.
        output_tokens_per_minute: tokens of answers.
        pico_dollars_per_minute: cost, in 10^-12 dollars; as a setting, `dollars_per_minute` in dollars.
        concurrency: concurrent requests.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    requests_per_minute: _Limit = None
    input_tokens_per_minute: _Limit = None
    output_tokens_per_minute: _Limit = None
    pico_dollars_per_minute: _Dollars = Field(default=None, alias="dollars_per_minute")
    concurrency: _Limit = None

    @property
    def is_output_capped(self) -> bool:
        """Return True if the limits hold only if no answer is longer than estimated."""
        return self.output_tokens_per_minute is not None or self.pico_dollars_per_minute is not None


class DailyBudget(BaseModel):
    """Budget of all requests of a day (UTC) together; None means no cap.

    Attributes:
        max_calls: requests sent to providers.
        max_tokens: input and output tokens together.
        max_pico_dollars: cost, in 10^-12 dollars; as a setting, `max_cost_dollars` in dollars.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    max_calls: _Limit = None
    max_tokens: _Limit = None
    max_pico_dollars: _Dollars = Field(default=None, alias="max_cost_dollars")


class ProviderName(Enum):
    """Supported language-model providers."""

    OFFLINE = "offline"
    OPENAI = "openai"
    OPENAI_RESPONSES = "openai-responses"
    ANTHROPIC = "anthropic"
    GEMINI = "gemini"
    DEEPSEEK = "deepseek"
    OLLAMA = "ollama"
    AZURE = "azure"
    GENERIC = "generic"
    SCRIPTED = "scripted"


class NarratorProfile(Enum):
    """Size of the narrator's prompt: by the model's context window, or fixed."""

    BY_MODEL = "by-model"
    FULL = "full"
    LOCAL_LITE = "local-lite"


class LogLevel(Enum):
    """Minimum severity of log events."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogFormat(Enum):
    """Format of log events: `auto` is key=value on a terminal and JSON elsewhere."""

    AUTO = "auto"
    CONSOLE = "console"
    JSON = "json"


# Limits of the smallest accounts; larger accounts must be configured.
_DEFAULT_LIMITS = {
    provider: ProviderLimits(requests_per_minute=requests)
    for provider, requests in {
        "anthropic": 50,
        "gemini": 60,
        "deepseek": 100,
        "openai": 60,
    }.items()
}
_ADDRESS = re.compile(r"(?P<host>\[[0-9a-fA-F:.%a-z]+\]|[^\s:/\[\]]+):(?P<port>\d{1,5})")
_SQLITE = re.compile(r"sqlite:///.*[^/]")
_POSTGRESQL = re.compile(r"postgresql://([^\s/?#@]*@)?[^\s/?#@]*/[^\s/?#]+(\?[^\s#]*)?")
_REDIS = re.compile(r"rediss?://([^\s/?#@]*@)?[^\s/?#@]+(/\d*)?(\?[^\s#]*)?")
_ESCAPING_HINT = "with special characters of the password percent-encoded (%40 for @, %2F for a slash)"
_PREFIX = "PERIPETY_"
# Variables that are read elsewhere.
_OTHER_VARIABLES = ("PERIPETY_SIMCORE", "PERIPETY_DEBUG")
_SIMILAR = 0.85
_Seconds: TypeAlias = Annotated[float, Field(gt=0, le=86_400)]
_MIB = 1024 * 1024


def split_address(address: str) -> tuple[str, int]:
    """Split `host:port` (`[::1]:port` for IPv6) into host and port, the host without brackets.

    Raises:
        ValueError: the text is not such an address.
    """
    match = _ADDRESS.fullmatch(address)
    if match is None or int(match["port"]) > 65535:  # noqa: PLR2004 - the highest port there is
        raise ValueError("must be host:port, for example 127.0.0.1:50051")
    return match["host"].strip("[]"), int(match["port"])


def describe_listen_error(error: OSError) -> str:
    """Return the reason why a socket cannot listen, without the address that Python adds to it."""
    if error.errno is None or error.errno < 0:  # the name of the host is not found
        return error.strerror or str(error)
    return os.strerror(error.errno)


def is_loopback(host: str) -> bool:
    """Return True if a host name or address is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _default_database_url() -> SecretStr:
    data_home = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return SecretStr(f"sqlite:///{Path(data_home) / 'peripety' / 'peripety.db'}")


class Config(BaseModel):
    """Settings of a process.

    Attributes:
        model_provider: default provider; `offline` needs no model, no key and no network.
        openai_api_base: base URL of OpenAI, or of the server of the provider `generic`.
        openai_api_key: API key; never logged, like all keys.
        anthropic_api_base: base URL of Anthropic's API.
        anthropic_api_key: API key.
        gemini_api_base: base URL of Gemini's API.
        gemini_api_key: API key.
        google_api_key: alternative to `gemini_api_key`, the name that Google's own tools use.
        deepseek_api_base: base URL of DeepSeek's API.
        deepseek_api_key: API key.
        ollama_api_base: base URL of an Ollama server; if Ollama is the configured provider, `openai_api_base`
            is accepted, too.
        ollama_api_key: API key, if the server requires one.
        azure_api_base: base URL of an Azure OpenAI resource.
        azure_api_key: API key.
        scripted_api_base: base URL of an external scripted LLM; if absent, this process serves one.
        scripted_api_key: API key, if the script defines keys.
        script: script file of the provider `scripted`.
        model_name: default model; the provider's own default if absent.
        provider_connect_seconds: timeout of a connection to a provider.
        provider_first_event_seconds: timeout of the first event of a response; comments and blank lines do
            not count.
        provider_pause_seconds: timeout between two events of a response.
        provider_total_seconds: timeout of a whole response.
        models: file of model descriptions that extends and overrides the built-in catalogue.
        profile: size of the narrator's prompt: `by-model` follows the context window of the model,
            `local-lite` fits a window of 4,096 tokens, `full` gives all parts whatever the window is.
        narrator_room_bytes: size of the narrator's history and turn, instead of the one for the model's
            window.
        narrator_seconds: time limit of the narration of a turn, including its repair.
        limits: rate limits by provider (`openai`) or by provider and model (`openai/gpt-5`); other providers
            have their default limits.
        daily_budget: budget of all requests of a day.
        breaker_failures: number of consecutive failures that opens the circuit breaker of a provider.
        breaker_open_seconds: seconds that the circuit breaker stays open.
        breaker_successes: number of consecutive successes that closes the half-open circuit breaker.
        database_url: `sqlite:///PATH`, by default a file in the user's data directory, or
            `postgresql://user:password@host:port/name`; never logged.
        redis_url: `redis://user:password@host:port/number`, for state that replicas share and may lose; never
            logged.
        listen: address the server listens on; port 0 selects a free one.
        edge_listen: address that the HTTP edge listens on; port 0 selects a free one.
        edge_hosts: names of the edge besides those of this machine, for the `Host` of requests;
            separated by commas.
        edge_origins: origins of other sites whose pages may call the edge, such as `https://example.org`;
            separated by commas.
        edge_token: token that HTTP requests must have; never logged.
        edge_enforcement_points: addresses of enforcement points whose approvals the edge forwards, `host:0`
            for every port; separated by commas. Those of this machine need no entry if the edge
            listens on loopback and has no other names.
        services_address: address of the services that the edge calls if it runs in another process.
        gateway_address: address of the gateway service if it runs in another process.
        scenarios_address: address of the scenario service if it runs in another process.
        policies_address: address of the policy service if it runs in another process.
        testgen_commands: allow callers to specify commands under test; they run on this machine as this user.
        testgen_unfenced: run commands without a fence if this machine does not support one; see
            docs/how-to/generate-tests.md.
        testgen_tasks: folder of tasks that the server offers for test generation: `NAME.md`, or
            `NAME/task.md` with the files of its environment beside it.
        insecure: allow plaintext on an address that other machines can reach.
        response_cache_memory_bytes: maximum size of the response cache in memory; 0 disables it.
        response_cache_disk_bytes: maximum size of the response cache in the database; 0 disables it.
        response_cache_ttl_seconds: time to live of a cached response.
        log_level: minimum severity of log events.
        log_format: format of log events: `console` (key=value), `json`, or `auto`, which is `console` on a
            terminal and `json` elsewhere.
        max_message_bytes: maximum size of a message in either direction.
        max_concurrent_calls: maximum number of concurrent calls; more are rejected with RESOURCE_EXHAUSTED.
        default_deadline_seconds: deadline of a call whose caller sets none.
        drain_seconds: maximum time for running calls to end after a shutdown request.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True,
        validate_by_name=True,
        validate_default=True,
        extra="forbid",
        hide_input_in_errors=True,
    )

    model_provider: ProviderName = Field(default=ProviderName.OFFLINE, validation_alias="MODEL_PROVIDER")
    openai_api_base: str | None = Field(default=None, validation_alias="OPENAI_API_BASE")
    openai_api_key: SecretStr | None = Field(default=None, validation_alias="OPENAI_API_KEY")
    anthropic_api_base: str | None = Field(default=None, validation_alias="ANTHROPIC_API_BASE")
    anthropic_api_key: SecretStr | None = Field(default=None, validation_alias="ANTHROPIC_API_KEY")
    gemini_api_base: str | None = Field(default=None, validation_alias="GEMINI_API_BASE")
    gemini_api_key: SecretStr | None = Field(default=None, validation_alias="GEMINI_API_KEY")
    google_api_key: SecretStr | None = Field(default=None, validation_alias="GOOGLE_API_KEY")
    deepseek_api_base: str | None = Field(default=None, validation_alias="DEEPSEEK_API_BASE")
    deepseek_api_key: SecretStr | None = Field(default=None, validation_alias="DEEPSEEK_API_KEY")
    ollama_api_base: str | None = Field(default=None, validation_alias="OLLAMA_API_BASE")
    ollama_api_key: SecretStr | None = Field(default=None, validation_alias="OLLAMA_API_KEY")
    azure_api_base: str | None = Field(default=None, validation_alias="AZURE_API_BASE")
    azure_api_key: SecretStr | None = Field(default=None, validation_alias="AZURE_API_KEY")
    scripted_api_base: str | None = Field(default=None, validation_alias="SCRIPTED_API_BASE")
    scripted_api_key: SecretStr | None = Field(default=None, validation_alias="SCRIPTED_API_KEY")
    script: Path | None = None
    model_name: str | None = Field(default=None, validation_alias="MODEL_NAME")

    provider_connect_seconds: _Seconds = 10.0
    provider_first_event_seconds: _Seconds = 120.0
    provider_pause_seconds: _Seconds = 60.0
    provider_total_seconds: _Seconds = 1_800.0
    models: Path | None = None
    profile: NarratorProfile = NarratorProfile.BY_MODEL
    narrator_room_bytes: int | None = Field(default=None, ge=1_400, le=1_000_000)
    narrator_seconds: _Seconds = 90.0
    limits: dict[str, ProviderLimits] = Field(default_factory=dict)
    daily_budget: DailyBudget | None = None
    breaker_failures: int = Field(default=5, ge=1)
    breaker_open_seconds: float = Field(default=60.0, gt=0, le=3_600)
    breaker_successes: int = Field(default=2, ge=1)
    database_url: SecretStr = Field(default_factory=_default_database_url)
    redis_url: SecretStr | None = None
    listen: str = "127.0.0.1:50051"
    edge_listen: str = "127.0.0.1:50080"
    edge_hosts: tuple[str, ...] = ()
    edge_origins: tuple[str, ...] = ()
    edge_token: SecretStr | None = None
    edge_enforcement_points: tuple[str, ...] = ()
    services_address: str = "127.0.0.1:50051"
    gateway_address: str | None = None
    scenarios_address: str | None = None
    policies_address: str | None = None
    testgen_commands: bool = False
    testgen_unfenced: bool = False
    testgen_tasks: Path | None = None
    insecure: bool = False

    response_cache_memory_bytes: int = Field(default=32 * _MIB, ge=0)
    response_cache_disk_bytes: int = Field(default=256 * _MIB, ge=0)
    response_cache_ttl_seconds: float = Field(default=86_400.0, gt=0)

    log_level: LogLevel = LogLevel.INFO
    log_format: LogFormat = LogFormat.AUTO

    max_message_bytes: int = Field(default=4 * _MIB, ge=64 * 1024, le=64 * _MIB)
    max_concurrent_calls: int = Field(default=256, ge=1)
    default_deadline_seconds: float = Field(default=300.0, gt=0, le=86_400)
    drain_seconds: float = Field(default=60.0, ge=0, le=3_600)

    @classmethod
    def from_environment(cls, **overrides: Any) -> Self:
        """Read the settings from the environment of this process; an empty variable counts as absent.

        Args:
            **overrides: attributes that take precedence over the environment, such as command-line options.

        Raises:
            InvalidArgumentError: a variable has an invalid value; the message names the variable.
        """
        given = {
            name: value
            for name, variable in _environment_variables().items()
            if (value := os.environ.get(variable))
        }
        try:
            return cls(**(given | overrides))
        except ValidationError as error:
            raise _configuration_error(error) from None

    @staticmethod
    def find_misspelt_variables() -> dict[str, str]:
        """Return variables of the environment that belong to no setting, with the similar name of one."""
        known = {*_environment_variables().values(), *_OTHER_VARIABLES}
        similar = {
            name: get_close_matches(name, known, n=1, cutoff=_SIMILAR)
            for name in os.environ
            if name.startswith(_PREFIX) and name not in known
        }
        return {name: found[0] for name, found in sorted(similar.items()) if found}

    @field_validator(
        "listen",
        "edge_listen",
        "services_address",
        "gateway_address",
        "scenarios_address",
        "policies_address",
    )
    @classmethod
    def _check_address(cls, value: str | None) -> str | None:
        if value is not None:
            split_address(value)
        return value

    @field_validator("edge_hosts", "edge_origins", "edge_enforcement_points", mode="before")
    @classmethod
    def _split_list(cls, value: Any) -> Any:
        return [part.strip() for part in value.split(",")] if isinstance(value, str) else value

    @field_validator("edge_origins")
    @classmethod
    def _check_origins(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not all(re.fullmatch(r"https?://[^\s/@]+", origin) for origin in value):
            raise ValueError("must be origins such as https://example.org, separated by commas")
        return value

    @field_validator("edge_enforcement_points")
    @classmethod
    def _check_addresses(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for address in value:
            split_address(address)
        return value

    @field_validator("limits", mode="before")
    @classmethod
    def _complete_limits(cls, value: Any) -> Any:
        given = _parse_json_object(value)
        providers = [provider.value for provider in ProviderName]
        if not {name.partition("/")[0] for name in given} <= set(providers):
            raise ValueError(
                "must have keys that are providers or provider/model; choose from " + ", ".join(providers),
            )
        return _DEFAULT_LIMITS | given

    @field_validator("daily_budget", mode="before")
    @classmethod
    def _read_daily_budget(cls, value: Any) -> Any:
        return value if value is None or isinstance(value, DailyBudget) else _parse_json_object(value)

    @field_validator("database_url")
    @classmethod
    def _check_database_url(cls, value: SecretStr) -> SecretStr:
        url = value.get_secret_value()
        if _SQLITE.fullmatch(url) and ":memory:" not in url:
            return value
        if not _POSTGRESQL.fullmatch(url):
            raise ValueError(
                "must be sqlite:///PATH, a file, or "
                f"postgresql://user:password@host:port/name, {_ESCAPING_HINT}",
            )
        return value

    @field_validator("redis_url")
    @classmethod
    def _check_redis_url(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and not _REDIS.fullmatch(value.get_secret_value()):
            raise ValueError(
                "must be redis://user:password@host:port/number, or rediss:// for an encrypted connection,"
                f" {_ESCAPING_HINT}",
            )
        return value

    @field_validator(
        "openai_api_base",
        "anthropic_api_base",
        "gemini_api_base",
        "deepseek_api_base",
        "ollama_api_base",
        "azure_api_base",
        "scripted_api_base",
    )
    @classmethod
    def _check_api_base(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"https?://[^/@\s]+(/\S*)?", value):
            raise ValueError("must be an http:// or https:// URL without credentials in it")
        return value

    @model_validator(mode="after")
    def _check_provider_is_reachable(self) -> Self:
        if self.model_provider is ProviderName.GENERIC and self.openai_api_base is None:
            raise ValueError("MODEL_PROVIDER=generic needs OPENAI_API_BASE, the base URL of the server")
        return self

    @property
    def needs_script(self) -> bool:
        """True if this process must serve the scripted LLM."""
        return self.model_provider is ProviderName.SCRIPTED and self.scripted_api_base is None

    @property
    def default_model_identity(self) -> str:
        """Identity of the default model: everything that distinguishes one default model from another.

        Some servers are distinguished only by their address. The address of a script served by this process
        is left out, as it changes every time.
        """
        named = (
            self.model_provider.value,
            self.model_name,
            self.openai_api_base,
            self.ollama_api_base,
            self.scripted_api_base,
        )
        return " ".join(filter(None, named))


def _parse_json_object(value: Any) -> dict[str, Any]:
    """Parse a JSON object with exact decimals, unless the value is one already."""
    given = json.loads(value, parse_float=Decimal) if isinstance(value, str) else value
    if not isinstance(given, dict):
        raise ValueError("must be a JSON object")  # noqa: TRY004 - the library turns this one into an answer
    return given


def _environment_variables() -> dict[str, str]:
    """Map each attribute to its environment variable."""
    return {
        name: str(field.validation_alias or f"{_PREFIX}{name}".upper())
        for name, field in Config.model_fields.items()
    }


def _describe_error(error: ErrorDetails) -> str:
    if error["type"] == "enum":
        expected = str(error["ctx"]["expected"])
        return "must be one of " + expected.replace("'", "").replace(" or ", ", ")
    place = ".".join(map(str, error["loc"][1:]))
    return (place and f"{place}: ") + error["msg"].removeprefix("Value error, ")


def _configuration_error(error: ValidationError) -> InvalidArgumentError:
    """Return an error that names the invalid variables without their values: one of them may be a key."""
    variables = _environment_variables()
    violations = [
        FieldViolation(
            variables.get(str(e["loc"][0]), str(e["loc"][0])) if e["loc"] else "",
            _describe_error(e),
        )
        for e in error.errors(include_url=False, include_input=False)
    ]
    text = "; ".join(f"{v.field} {v.reason}".strip() for v in violations)
    return InvalidArgumentError(
        f"invalid configuration: {text}",
        code="BAD_CONFIGURATION",
        violations=violations,
    )
