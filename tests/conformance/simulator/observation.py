"""Answer as an SDK shows it to its user, in terms that all SDKs share."""

from __future__ import annotations

from dataclasses import astuple, dataclass, field
from typing import Any

__all__ = ["Counts", "Observation", "Raised"]


@dataclass(frozen=True)
class Counts:
    """The tokens that an SDK reports; None is what it does not report.

    Attributes:
        input: all input tokens, cached or not.
        cached: those that were read from the prompt cache.
        output: all output tokens, reasoning included.
        reasoning: those that are reasoning.
    """

    input: int | None = None
    cached: int | None = None
    output: int | None = None
    reasoning: int | None = None

    def agrees(self, expected: Counts) -> bool:
        """Return True if all counts that both have are equal."""
        pairs = zip(astuple(self), astuple(expected), strict=True)
        return all(one is None or other is None or one == other for one, other in pairs)


@dataclass(frozen=True)
class Raised:
    """An exception.

    Attributes:
        name: its class.
        status: its HTTP status, if it has one.
        retry_after: seconds until a retry, if its user can find out.
    """

    name: str
    status: int | None = None
    retry_after: float | None = None

    def __str__(self) -> str:
        """In words, as in the published table."""
        status = "" if self.status is None else f" {self.status}"
        later = "" if self.retry_after is None else f", again in {self.retry_after:g} s"
        return f"`{self.name}`{status}{later}"


@dataclass
class Observation:
    """Observed parts of one answer; it grows while the answer arrives.

    Attributes:
        text: the prose.
        calls: names and arguments of tool calls, in order; arguments that are not JSON are a text.
        reasoning: the visible thoughts of the model.
        refusal: the refusal, where the SDK has a place for one.
        stop: the stop reason, in the API's own word.
        counts: the tokens.
        parsed: the value that the SDK's own helper for structured output reads from the answer.
        raised: the exception that was raised at the end.
    """

    text: str = ""
    calls: list[tuple[str, Any]] = field(default_factory=list)
    reasoning: str = ""
    refusal: str = ""
    stop: str | None = None
    counts: Counts = field(default_factory=Counts)
    parsed: Any = None
    raised: Raised | None = None
