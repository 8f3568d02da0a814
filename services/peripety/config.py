"""Settings of a process: read once, frozen, handed to everything as a parameter.

`Config.from_environment()` reads the variables; a bad value is an error that names its variable.
`Config(...)` takes values and looks at nothing else, so that a test never depends on the shell it runs in.
"""

from __future__ import annotations

import ipaddress
import json
import os
import re
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, TypeAlias

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)

from peripety.errors import FieldViolation, InvalidArgumentError
from peripety.limits import DailyBudget, ProviderLimits

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

__all__ = [
    "Config",
    "DailyBudget",
    "LogFormat",
    "LogLevel",
    "ProviderLimits",
    "ProviderName",
    "is_loopback",
    "split_address",
]


class ProviderName(Enum):
    """The language-model providers this version can speak to."""

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


class LogLevel(Enum):
    """The least severe event that is written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogFormat(Enum):
    """How events are written: `auto` is key=value on a terminal and JSON anywhere else."""

    AUTO = "auto"
    CONSOLE = "console"
    JSON = "json"


# What the smallest accounts are given; who has more says so.
_USUAL_LIMITS = {
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
_ESCAPED = "with %40 for an @ in the password, %2F for a slash and the like"
_PREFIX = "PERIPETY_"
_Seconds: TypeAlias = Annotated[float, Field(gt=0, le=86_400)]
_MIB = 1024 * 1024


def split_address(address: str) -> tuple[str, int]:
    """Split `host:port` (`[::1]:port` for IPv6) into its parts, the host without brackets.

    Raises:
        ValueError: the text is not such an address.
    """
    match = _ADDRESS.fullmatch(address)
    if match is None or int(match["port"]) > 65535:  # noqa: PLR2004 - the highest port there is
        raise ValueError("must be host:port, for example 127.0.0.1:50051")
    return match["host"].strip("[]"), int(match["port"])


def is_loopback(host: str) -> bool:
    """Whether a host, named or as an address, is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _default_database_url() -> SecretStr:
    data_home = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return SecretStr(f"sqlite:///{Path(data_home) / 'peripety' / 'peripety.db'}")


class Config(BaseModel):
    """Everything that can be set from outside.

    Attributes:
        model_provider: who answers prompts; `offline` needs no model, no key and no network.
        openai_api_base: base URL of OpenAI, or of the server of the provider `generic`.
        openai_api_key: its key; never logged, like all keys.
        anthropic_api_base: base URL of Anthropic's API.
        anthropic_api_key: the key there.
        gemini_api_base: base URL of Gemini's API.
        gemini_api_key: the key there.
        google_api_key: the same, under the name that Google's own tools know.
        deepseek_api_base: base URL of DeepSeek's API.
        deepseek_api_key: the key there.
        ollama_api_base: base URL of an Ollama server; as the configured provider it may also be given as
            that of `openai_api_base`.
        ollama_api_key: the key there, where one is wanted.
        azure_api_base: base URL of an Azure OpenAI resource.
        azure_api_key: the key there.
        scripted_api_base: base URL of a scripted LLM that is served elsewhere; else one is served here.
        scripted_api_key: the key there, where the script names keys.
        script: the file of what the provider `scripted` answers.
        model_name: the model to ask for; the provider's own default when absent.
        provider_connect_seconds: how long to wait until a connection to a provider stands.
        provider_first_event_seconds: until the first event of its answer; comments and blank lines are none.
        provider_pause_seconds: between two pieces of it.
        provider_total_seconds: until its end.
        models: a file of models that adds to what is known of models, and corrects it.
        limits: what may be used, by provider (`openai`) or by provider and model (`openai/gpt-5`); a provider
            that is not named keeps its usual limits.
        daily_budget: what all requests of a day may use together.
        breaker_failures: so many failures of a provider in a row stop calls to it.
        breaker_open_seconds: for how long they are stopped.
        breaker_successes: so many successes in a row end the trial that follows.
        database_url: `sqlite:///PATH`, by default a file in the user's data directory, or
            `postgresql://user:password@host:port/name`; never logged.
        redis_url: `redis://user:password@host:port/number`, where replicas share what may be lost; never
            logged.
        listen: address the server listens on; port 0 takes a free one.
        gateway_address: where the gateway service answers, when it runs in another process.
        scenarios_address: the same for the scenario service.
        policies_address: the same for the policy service.
        testgen_commands: allow callers to name commands that tests are run on; they run here, as this user.
        insecure: allow plaintext on an address that other machines can reach.
        response_cache_memory_bytes: the most that stored answers take in memory; 0 keeps none there.
        response_cache_disk_bytes: the most that they take in the database; 0 keeps none there.
        response_cache_ttl_seconds: how long a stored answer holds.
        log_level: the least severe event that is written.
        log_format: key=value or JSON.
        max_message_bytes: largest message taken or sent.
        max_concurrent_calls: calls under way at once; more are refused with RESOURCE_EXHAUSTED.
        default_deadline_seconds: time given to a call that brings no deadline of its own.
        drain_seconds: how long calls under way may go on after a stop was asked for.
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
    limits: dict[str, ProviderLimits] = Field(default_factory=dict)
    daily_budget: DailyBudget | None = None
    breaker_failures: int = Field(default=5, ge=1)
    breaker_open_seconds: float = Field(default=60.0, gt=0, le=3_600)
    breaker_successes: int = Field(default=2, ge=1)
    database_url: SecretStr = Field(default_factory=_default_database_url)
    redis_url: SecretStr | None = None
    listen: str = "127.0.0.1:50051"
    gateway_address: str | None = None
    scenarios_address: str | None = None
    policies_address: str | None = None
    testgen_commands: bool = False
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
            **overrides: attributes that were given more directly, on a command line; they win.

        Raises:
            InvalidArgumentError: a variable has a value that cannot be used; the message names it.
        """
        given = {
            name: value for name, variable in _variables().items() if (value := os.environ.get(variable))
        }
        try:
            return cls(**(given | overrides))
        except ValidationError as error:
            raise _explain(error) from None

    @field_validator("listen", "gateway_address", "scenarios_address", "policies_address")
    @classmethod
    def _check_address(cls, value: str | None) -> str | None:
        if value is not None:
            split_address(value)
        return value

    @field_validator("limits", mode="before")
    @classmethod
    def _complete_limits(cls, value: Any) -> Any:
        given = _json_object(value)
        providers = [provider.value for provider in ProviderName]
        if not {name.partition("/")[0] for name in given} <= set(providers):
            raise ValueError("must name providers (or provider/model); there are " + ", ".join(providers))
        return _USUAL_LIMITS | given

    @field_validator("daily_budget", mode="before")
    @classmethod
    def _read_daily_budget(cls, value: Any) -> Any:
        return value if value is None or isinstance(value, DailyBudget) else _json_object(value)

    @field_validator("database_url")
    @classmethod
    def _check_database_url(cls, value: SecretStr) -> SecretStr:
        url = value.get_secret_value()
        if _SQLITE.fullmatch(url) and ":memory:" not in url:
            return value
        if not _POSTGRESQL.fullmatch(url):
            raise ValueError(
                f"must be sqlite:///PATH, a file, or postgresql://user:password@host:port/name, {_ESCAPED}"
            )
        return value

    @field_validator("redis_url")
    @classmethod
    def _check_redis_url(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and not _REDIS.fullmatch(value.get_secret_value()):
            raise ValueError(
                "must be redis://user:password@host:port/number, or rediss:// for an encrypted connection,"
                f" {_ESCAPED}"
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
            raise ValueError("MODEL_PROVIDER=generic needs OPENAI_API_BASE, the URL of the server to ask")
        return self

    @property
    def needs_script(self) -> bool:
        """Whether who answers prompts has to be served here, from a script."""
        return self.model_provider is ProviderName.SCRIPTED and self.scripted_api_base is None

    @property
    def answerer(self) -> str:
        """Who answers where a request names no model: whatever tells one from another.

        Of some servers only their address does. A script that is served here has another one every time.
        """
        named = (
            self.model_provider.value,
            self.model_name,
            self.openai_api_base,
            self.ollama_api_base,
            self.scripted_api_base,
        )
        return " ".join(filter(None, named))


def _json_object(value: Any) -> dict[str, Any]:
    """Read a JSON object with exact decimals, unless it is one already."""
    given = json.loads(value, parse_float=Decimal) if isinstance(value, str) else value
    if not isinstance(given, dict):
        raise ValueError("must be a JSON object")  # noqa: TRY004 - the library turns this one into an answer
    return given


def _variables() -> dict[str, str]:
    """Map each attribute to the environment variable that sets it."""
    return {
        name: str(field.validation_alias or f"{_PREFIX}{name}".upper())
        for name, field in Config.model_fields.items()
    }


def _sentence(error: ErrorDetails) -> str:
    if error["type"] == "enum":
        expected = str(error["ctx"]["expected"])
        return "is not available; choose one of " + expected.replace("'", "").replace(" or ", ", ")
    place = ".".join(map(str, error["loc"][1:]))
    return (place and f"{place}: ") + error["msg"].removeprefix("Value error, ")


def _explain(error: ValidationError) -> InvalidArgumentError:
    """Say which variables are wrong without repeating their values: one of them may be a key."""
    variables = _variables()
    violations = [
        FieldViolation(variables.get(str(e["loc"][0]), str(e["loc"][0])) if e["loc"] else "", _sentence(e))
        for e in error.errors(include_url=False, include_input=False)
    ]
    text = "; ".join(f"{v.field} {v.reason}".strip() for v in violations)
    return InvalidArgumentError(f"Bad configuration: {text}", code="BAD_CONFIGURATION", violations=violations)
