"""A short run of what `make fuzz-arrivals` does, and whether it would find what it looks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fuzz import arrivals
from fuzz.arrivals import compare_arrivals
from peripety.testgen.prompts.stream_parser import DraftStreamParser

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.gateway.types.response import GatewayEvent
    from peripety.testgen.prompts.stream_parser import UnreadablePart
    from peripety.testgen.types import DraftTest


@pytest.mark.slow(reason="cuts answers at hundreds of places")
def test_tests_are_read_as_written_wherever_an_answer_is_cut() -> None:
    assert [told for number in range(60) if (told := compare_arrivals(7, number)) is not None] == []


def test_a_test_that_comes_late_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    class Late(DraftStreamParser):
        def __init__(self) -> None:
            super().__init__()
            self._held: list[DraftTest | UnreadablePart] = []

        def feed(self, event: GatewayEvent) -> Iterator[DraftTest | UnreadablePart]:
            held, self._held = self._held, [*super().feed(event)]
            return iter(held)

    monkeypatch.setattr(arrivals, "DraftStreamParser", Late)
    assert all(compare_arrivals(7, number) for number in range(5))
