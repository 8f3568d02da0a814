"""Capture log: bounded in memory, optionally complete in a file."""

from __future__ import annotations

import json
from collections import Counter, deque
from difflib import SequenceMatcher
from threading import RLock
from typing import TYPE_CHECKING

from peripety.errors import FailedPreconditionError
from peripety.simulator.capture.calls import Answered, Asked, Captured, Failed

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from peripety.simulator.capture.calls import Outcome
    from peripety.simulator.scenario.model import Rule

__all__ = ["CaptureLog"]

LIMIT = 10_000

_COMPARED = 200
_SHOWN = 80


class CaptureLog:
    """Thread-safe log of all calls, in order.

    A search text is found anywhere in a prompt; a compiled regular expression is searched for.

    Args:
        rules: returns the rules, to find unused ones.
        path: a file that gets one line of JSON per call, flushed at once; None for no file.
        limit: maximum number of calls in memory.

    Raises:
        FailedPreconditionError: the file cannot be written.
    """

    def __init__(
        self, rules: Callable[[], Sequence[Rule]], path: Path | None = None, limit: int = LIMIT
    ) -> None:
        self._rules = rules
        self._lock = RLock()
        self._calls: deque[Captured] = deque(maxlen=limit)
        self._used: Counter[str] = Counter()
        self._number = 0
        self._file = None
        if path is not None:
            try:
                self._number = _mended(path)
                self._file = path.open("ab")
            except OSError as error:
                raise FailedPreconditionError(
                    f"the capture file {path} cannot be written: {error.strerror or error}; choose another"
                ) from error

    def record(self, asked: Asked, time: float, label: str | None, outcome: Outcome) -> Captured:
        """Add a call; see `Captured` for the arguments."""
        with self._lock:
            self._number += 1
            call = Captured(self._number, time, asked, label, outcome)
            self._calls.append(call)
            if label is not None:
                self._used[label] += 1
            if self._file is not None:
                self._file.write(_line(call))
                self._file.flush()
        return call

    def clear(self) -> None:
        """Clear the calls and the set of used rules; the file stays as it is."""
        with self._lock:
            self._calls.clear()
            self._used.clear()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None

    # ---- queries

    def __iter__(self) -> Iterator[Captured]:
        """Iterate over the calls, oldest first."""
        with self._lock:
            return iter(list(self._calls))

    def __len__(self) -> int:
        return len(self._calls)

    def last(self, count: int = 1) -> list[Captured]:
        """Return the latest calls, oldest first."""
        return list(self)[-count:] if count > 0 else []

    def count(self, predicate: Callable[[Captured], bool]) -> int:
        """Return the number of calls for which a predicate holds."""
        return sum(1 for call in self if predicate(call))

    def find_by_prompt(self, prompt: str | re.Pattern[str]) -> list[Captured]:
        """Return the calls whose prompt contains a text."""
        return [call for call in self if _has(call.request.prompt, prompt)]

    def find_responses(self) -> list[Captured]:
        """Return the calls with an answer."""
        return [call for call in self if isinstance(call.outcome, Answered)]

    def find_failures(self, kind: str | None = None) -> list[Captured]:
        """Return the calls that failed or whose answer was changed by a fault; with `kind`, by that kind."""
        return [call for call in self if (found := _failure(call)) is not None and kind in {None, found}]

    def unused_rules(self) -> list[str]:
        """Return the labels of rules that never answered."""
        labels = (f"response[{number}]" for number in range(len(self._rules())))
        return [label for label in labels if label not in self._used]

    def unused_turns(self) -> list[str]:
        """Return the labels of turns that never answered."""
        labels = (
            f"response[{number}].turn[{turn}]"
            for number, rule in enumerate(self._rules())
            for turn in range(len(rule.turns))
        )
        return [label for label in labels if label not in self._used]

    # ---- assertions

    def assert_received(self, prompt: str | re.Pattern[str]) -> None:
        """Assert that a prompt contains a text.

        Raises:
            AssertionError: no prompt does; the message shows the closest.
        """
        if not self.find_by_prompt(prompt):
            raise AssertionError(f"no prompt has {_quoted(prompt)}; {self._nearest(prompt)}")

    def assert_not_received(self, prompt: str | re.Pattern[str]) -> None:
        """Assert that no prompt contains a text.

        Raises:
            AssertionError: a prompt does.
        """
        if found := self.find_by_prompt(prompt):
            raise AssertionError(f"{_shown(found[0])} has {_quoted(prompt)}, and no prompt should")

    def assert_count(self, count: int, prompt: str | re.Pattern[str] | None = None) -> None:
        """Assert the number of calls, or of calls whose prompt contains a text.

        Raises:
            AssertionError: the number differs.
        """
        found = list(self) if prompt is None else self.find_by_prompt(prompt)
        if len(found) != count:
            which = "calls" if prompt is None else f"prompts with {_quoted(prompt)}"
            shown = "".join(f"\n  {_shown(call)}" for call in found[-5:])
            raise AssertionError(f"{len(found)} {which}, not {count}{shown and ':'}{shown}")

    def assert_order(self, *prompts: str | re.Pattern[str]) -> None:
        """Assert that prompts arrived in this order; other calls may lie between them.

        Raises:
            AssertionError: a prompt is missing, or did not arrive after the one before it.
        """
        calls = iter(self)
        after = "from the beginning"
        for prompt in prompts:
            found = next((call for call in calls if _has(call.request.prompt, prompt)), None)
            if found is None:
                earlier = self.find_by_prompt(prompt)
                where = f"only {_shown(earlier[-1])} does" if earlier else self._nearest(prompt)
                raise AssertionError(f"{after}, no prompt has {_quoted(prompt)}; {where}")
            after = f"after {_shown(found)}"

    def assert_last_contains(self, text: str | re.Pattern[str]) -> None:
        """Assert that the latest answer contains a text.

        Raises:
            AssertionError: it does not, or no call was answered.
        """
        answers = self.find_responses()
        if not answers:
            raise AssertionError(f"nothing was answered, so no answer has {_quoted(text)}")
        last = answers[-1]
        answer = last.outcome.text if isinstance(last.outcome, Answered) else ""
        if not _has(answer, text):
            raise AssertionError(
                f"{_short(answer)}, the latest answer, to {_shown(last)}, lacks {_quoted(text)}"
            )

    def assert_all_used(self) -> None:
        """Assert that every rule and every turn has answered.

        Raises:
            AssertionError: some have not; the message lists them.
        """
        if unused := [*self.unused_rules(), *self.unused_turns()]:
            raise AssertionError(f"never used: {', '.join(unused)}")

    def _nearest(self, wanted: str | re.Pattern[str]) -> str:
        calls = self.last(_COMPARED)
        if not calls:
            return "nothing was received"
        text = wanted if isinstance(wanted, str) else wanted.pattern
        matcher = SequenceMatcher(b=text[:_COMPARED], autojunk=False)

        def likeness(call: Captured) -> float:
            matcher.set_seq1(call.request.prompt[:_COMPARED])
            return matcher.ratio()

        return f"of {len(self)} received, the nearest is {_shown(max(calls, key=likeness))}"


def _line(call: Captured) -> bytes:
    # A lone surrogate cannot be encoded in UTF-8, but it can be escaped in JSON.
    return json.dumps(call.to_json(), ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"


def _mended(path: Path) -> int:
    """Terminate a truncated last line of the file, and return the number of lines."""
    if not path.exists():
        return 0
    with path.open("r+b") as file:
        lines = 0
        line = b"\n"
        for lines, line in enumerate(file, 1):  # noqa: B007 - the last ones count
            pass
        if not line.endswith(b"\n"):
            file.write(b"\n")
    return lines


def _has(text: str, wanted: str | re.Pattern[str]) -> bool:
    return wanted in text if isinstance(wanted, str) else wanted.search(text) is not None


def _quoted(wanted: str | re.Pattern[str]) -> str:
    return _short(wanted) if isinstance(wanted, str) else f"/{wanted.pattern}/"


def _failure(call: Captured) -> str | None:
    match call.outcome:
        case Failed(type=kind):
            return kind
        case Answered(failure=kind):
            return kind
    return None


def _shown(call: Captured) -> str:
    return f"#{call.number} {_short(call.request.prompt)}"


def _short(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")
