"""Faults of an observation, and its short description."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.simulator.cases import Case
    from conformance.simulator.driver import Driver
    from conformance.simulator.observation import Observation

__all__ = ["faults", "shown"]


def faults(driver: Driver, case: Case, seen: Observation, *, whole: bool) -> Iterator[str]:
    """Yield every difference between an answer and its script.

    Args:
        driver: driver of the SDK.
        case: the case that was requested.
        seen: its observation.
        whole: the answer was not streamed; then the SDK's helper for structured output had to read it.
    """
    right = case.expected
    if seen.raised is not None:
        yield f"raised {seen.raised}"
    # An SDK without a place for refusals shows them as text.
    if (seen.text, seen.refusal) not in {(right.text, right.refusal), (right.text + right.refusal, "")}:
        yield f"text {seen.text!r}, refusal {seen.refusal!r}"
    if seen.calls != list(right.calls):
        yield f"calls {seen.calls!r}"
    if seen.reasoning != right.reasoning and case.name not in driver.gaps:
        yield f"reasoning {seen.reasoning!r}"
    if seen.stop != driver.stops[right.stop]:
        yield f"stop {seen.stop!r}"
    if not seen.counts.agrees(right.counts):
        yield f"counts {seen.counts}"
    if (whole or seen.parsed is not None) and seen.parsed != right.parsed:
        yield f"parsed {seen.parsed!r}"


def shown(case: Case, seen: Observation) -> str:
    """Return a short description of the observation."""
    if seen.raised is not None:
        if case.races:
            return "an exception for a broken connection"
        return f"{seen.raised}, after a part of the answer" if seen.text or seen.calls else str(seen.raised)
    ending = "no stop reason" if seen.stop is None else f"`{seen.stop}`"
    usage = ", no usage" if seen.counts.input is None else ""
    return f"{_content(case, seen)}, {ending}{usage}"


def _content(case: Case, seen: Observation) -> str:
    text, calls = case.expected.text, list(case.expected.calls)
    if (seen.text + seen.refusal, seen.calls) == (text, calls):
        return "the whole answer"
    if not (seen.text or seen.calls or seen.refusal):
        return "an empty answer"
    if text.startswith(seen.text) and seen.calls == calls[: len(seen.calls)] and not seen.refusal:
        return "a part of the answer"
    return "another answer"
