"""Configured limits of language models: rate limits per provider, and a daily budget."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, ClassVar, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

__all__ = ["DailyBudget", "ProviderLimits"]

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
    def hold_answers(self) -> bool:
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
