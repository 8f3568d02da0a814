"""Request metering: admission, cache lookup, usage and cost of a request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from peripety.simulator.model import Api, ApiError, ErrorKind, Usage
from peripety.simulator.truth.bill import Bill, Ledger, bill
from peripety.simulator.truth.cache.prompt_caches import PromptCaches
from peripety.simulator.truth.keys import fingerprint
from peripety.simulator.truth.limits import Limits
from peripety.simulator.truth.models import catalogue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.simulator.model import Block, Request
    from peripety.simulator.scenario.model import Scenario
    from peripety.simulator.state import Table
    from peripety.simulator.truth.cache.visit import Visit
    from peripety.simulator.truth.limits import Admission, Allowance
    from peripety.simulator.truth.models import Model

__all__ = ["Meter", "Metered"]


class _Tables(Protocol):
    def __getitem__(self, name: str) -> Table: ...


class Meter:
    """Meter that combines context limits, prompt caches, rate limits and bills.

    Args:
        scenario: the rate limits.
        tables: the state of the simulator; the meter uses `cache`, `cachedContents`, `limits` and `bills`.

    Attributes:
        ledger: the accounts of all keys.
    """

    def __init__(self, scenario: Scenario, tables: _Tables) -> None:
        self._limits = Limits(scenario.limits, tables["limits"])
        self._caches = PromptCaches(tables["cache"], tables["cachedContents"])
        self.ledger = Ledger(tables["bills"])

    def reload(self, scenario: Scenario) -> None:
        """Apply the limits of another script; usage is preserved."""
        self._limits.change(scenario.limits)

    def begin(self, request: Request, now: float) -> Metered:
        """Admit a request.

        Args:
            request: the request; `Metered.finished` or `Metered.abandoned` must follow.
            now: the time of the request, in seconds since 1970.

        Raises:
            ApiError: the request is too long, has invalid cache controls, or exceeds a limit.
        """
        model = catalogue().find(request.model, request.api)
        _check_size(model, request)
        key = fingerprint(request.key)
        visit = self._caches.visit(model, key, request.prompt, now)
        reserved = Usage(visit.fresh, visit.read, visit.written, request.max_tokens or 0)
        admission = self._limits.admit(key, request.model, reserved, now)
        visit.accepted()
        return Metered(model, key, visit, admission, self.ledger, now)

    def allowance(self, request: Request, now: float) -> Allowance | None:
        """Return the remaining limits for a rejected request; None without limits."""
        return self._limits.allowance(fingerprint(request.key), request.model, now)


class Metered:
    """An admitted request. The methods report its progress.

    Attributes:
        model: the data of its model.
    """

    def __init__(
        self, model: Model, key: str, visit: Visit, admission: Admission, ledger: Ledger, now: float
    ) -> None:
        self.model = model
        self._key = key
        self._visit = visit
        self._admission = admission
        self._ledger = ledger
        self._begun = now
        self._usage = self.usage(0)
        self._started = self._ended = False

    def usage(self, output_tokens: int, reasoning_tokens: int = 0) -> Usage:
        """Return the usage for an answer of this length. The last call determines the bill.

        Args:
            output_tokens: all output tokens, including reasoning.
            reasoning_tokens: the reasoning tokens.
        """
        visit = self._visit
        self._usage = Usage(visit.fresh, visit.read, dict(visit.written), output_tokens, reasoning_tokens)
        return self._usage

    @property
    def bill(self) -> Bill:
        """The cost of the usage known so far."""
        return bill(self.model, self._usage, self._begun)

    def allowance(self, now: float) -> Allowance | None:
        """Return the remaining limits; None without limits."""
        return self._admission.allowance(now)

    def started(self, now: float) -> None:  # noqa: ARG002 every step is told when it is
        """Handle the first byte of the answer."""
        if not self._started:
            self._started = True
            self._visit.started()

    def finished(self, now: float, answer: Sequence[Block] = ()) -> None:
        """Handle the end of the answer.

        Args:
            now: the time.
            answer: the answer as blocks of a prompt that repeats it; without them the answer is not cached,
                although some providers cache answers.
        """
        self.started(now)
        if self._close(now):
            self._visit.finished(now, answer)

    def abandoned(self, now: float | None = None) -> None:
        """Handle an answer that failed or lost its reader.

        An answer that has started is paid for, to the extent that its usage is known; one that has not
        started is free.
        """
        if not self._started:
            self._usage = Usage()
        self._close(self._begun if now is None else now)

    def _close(self, now: float) -> bool:
        if self._ended:
            return False
        self._ended = True
        self._admission.settle(self._usage, now)
        if self._started:
            self._ledger.add(self._key, self.model.name, self._usage, self.bill)
        return True


def _check_size(model: Model, request: Request) -> None:
    tokens, most = request.prompt.tokens, model.context
    if most is None or tokens <= most:
        return
    match request.api:
        case Api.ANTHROPIC:
            raise _too_long(f"prompt is too long: {tokens} tokens > {most} maximum")
        case Api.GEMINI:
            raise _too_long(
                f"The input token count ({tokens}) exceeds the maximum number of tokens allowed ({most})."
            )
        case _:
            raise _too_long(
                f"This model's maximum context length is {most} tokens. However, your messages resulted in "
                f"{tokens} tokens. Please reduce the length of the messages.",
                "messages",
                "context_length_exceeded",
            )


def _too_long(message: str, param: str | None = None, code: str | None = None) -> ApiError:
    return ApiError(ErrorKind.INVALID_REQUEST, message, param=param, code=code)
