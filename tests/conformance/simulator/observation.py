"""What an SDK shows its user of an answer, in terms that all SDKs share."""

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
        """Whether nothing that both of them know differs."""
        pairs = zip(astuple(self), astuple(expected), strict=True)
        return all(one is None or other is None or one == other for one, other in pairs)


@dataclass(frozen=True)
class Raised:
    """An exception.

    Attributes:
        name: its class.
        status: the HTTP status it bears, if it bears one.
        retry_after: in how many seconds to come back, as far as its user can find out.
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
    """What is shown of one answer; it grows while the answer arrives.

    Attributes:
        text: the prose.
        calls: names and arguments of tool calls, in order; arguments that are no JSON are a text.
        reasoning: what is shown of the model's thoughts.
        refusal: what is shown as a refusal, where the SDK has a place for one.
        stop: why it ended, in the API's own word.
        counts: the tokens.
        parsed: the value that the SDK's own helper for structured output reads from the answer.
        raised: what was raised, after the rest was shown.
    """

    text: str = ""
    calls: list[tuple[str, Any]] = field(default_factory=list)
    reasoning: str = ""
    refusal: str = ""
    stop: str | None = None
    counts: Counts = field(default_factory=Counts)
    parsed: Any = None
    raised: Raised | None = None
