"""The published table: which SDK shows what, for every case, written from a run."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING

from conformance.simulator.cases import ANSWERS, FAILURES, SIZES, Case, Mode
from conformance.simulator.verdict import faults, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.simulator.driver import Driver
    from conformance.simulator.run import Run

__all__ = ["all_faults", "render"]

_INTRODUCTION = f"""\
# Conformance of llmsim with the official SDKs

This page shows how each official SDK reports each answer and each failure of llmsim, the scripted LLM.
`make conformance` writes it from a run of the published SDKs, and a test compares it with a run. Every answer
is requested whole and as a stream, by the synchronous and the asynchronous client. Streams are written chunk
by chunk and byte by byte; for the synchronous client also in pieces of
{", ".join(str(size) for size in SIZES if (size or 1) > 1)} bytes.

## Answers

✓ means that the SDK returns the scripted answer in every mode, wherever the stream is cut.
"""

_FAILURES = """\
## Failures

The results that the SDK returns for each failure, with its own retries turned off. The answer is one line in
chunks of two tokens; for failures of arguments, it is two tool calls. If the asynchronous client returns
another result, it follows. Numbers refer to gaps of the SDK itself. If an API does not number its chunks, a
doubled, missing or reordered chunk cannot be noticed.
"""


def all_faults(run: Run, driver: Driver, case: Case, mode: Mode) -> list[str]:
    """Return all faults of an answer, in pieces of every size."""
    return [
        f"in pieces of {size or 'any'} bytes: {fault}"
        for size in case.sizes_in(mode)
        for fault in faults(driver, case, run.observe(driver, case, size, mode), whole=not mode.streams)
    ]


def render(run: Run) -> str:
    """The page."""
    return "\n".join(_lines(run))


def _lines(run: Run) -> Iterator[str]:
    yield _INTRODUCTION
    notes = _Notes()
    yield _row("answer", *run.drivers)
    yield _row(*["---"] * (len(run.drivers) + 1))
    for case in ANSWERS:
        cells = (_answer(run, driver, case, notes) for driver in run.drivers.values())
        yield _row(f"{case.name}{f': {case.note}' if case.note else ''}", *cells)
    yield from notes.lines()
    yield ""
    yield _FAILURES
    for driver in run.drivers.values():
        yield from _failures(run, driver)


def _answer(run: Run, driver: Driver, case: Case, notes: _Notes) -> str:
    if case.name in driver.lacks:
        return f"none{notes.mark(driver.lacks[case.name])}"
    wrong = [fault for mode in Mode for fault in all_faults(run, driver, case, mode)]
    gap = notes.mark(driver.gaps[case.name]) if case.name in driver.gaps else ""
    return "; ".join(wrong) if wrong else f"✓{gap}"


def _failures(run: Run, driver: Driver) -> Iterator[str]:
    notes = _Notes()
    yield f"### {driver.name}, through `{driver.package}` {version(driver.package)}"
    yield ""
    yield _row("failure", "what happens", "not streamed", "streamed")
    yield _row(*["---"] * 4)
    for case in FAILURES:
        if case.name in driver.lacks:
            continue
        gap = notes.mark(driver.gaps[case.name]) if case.name in driver.gaps else ""
        cells = [
            _shown(run, driver, case, Mode.WHOLE, Mode.ASYNC_WHOLE),
            _shown(run, driver, case, Mode.STREAMED, Mode.ASYNC_STREAMED),
        ]
        yield _row(f"`{case.name}`{gap}", case.note, *cells)
    yield from notes.lines()
    yield ""


def _shown(run: Run, driver: Driver, case: Case, sync: Mode, asynchronous: Mode) -> str:
    first, second = (shown(case, run.observe(driver, case, None, mode)) for mode in (sync, asynchronous))
    return first if first == second else f"{first}; async: {second}"


class _Notes:
    """Footnotes of one table; the same words are one note."""

    def __init__(self) -> None:
        self._texts: list[str] = []

    def mark(self, text: str) -> str:
        if text not in self._texts:
            self._texts.append(text)
        return f" ({self._texts.index(text) + 1})"

    def lines(self) -> Iterator[str]:
        if self._texts:
            yield ""
        for number, text in enumerate(self._texts, 1):
            yield f"({number}) {text}  "


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
