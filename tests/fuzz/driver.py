"""What fuzzers have in common: cases by number, shared out to processes, until so much was looked at."""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Fuzzer"]


@dataclass(frozen=True)
class Fuzzer:
    """Compares random cases, each of which depends on the seed and its number alone.

    Attributes:
        compare: what differs in the case of a seed and a number; None when nothing does.
        counted: what is counted, such as `pairs`; also the name of the option that says how many.
        in_case: how many of those a case has, at least.
        cases_in_batch: cases that a process takes at once.
        default: how many to look at when nobody says.
    """

    compare: Callable[[int, int], str | None]
    counted: str
    in_case: int
    cases_in_batch: int
    default: int = 1_000_000

    def differences(self, count: int, seed: int, workers: int) -> Iterator[str]:
        """What differs, over at least so many."""
        batches = -(-count // (self.in_case * self.cases_in_batch))
        with ProcessPoolExecutor(workers) as pool:
            for told in pool.map(partial(self._batch, seed), range(batches)):
                yield from told

    def main(self, description: str | None, on: str) -> None:
        """The command line.

        Args:
            description: what `--help` says.
            on: what is compared.
        """
        parser = argparse.ArgumentParser(
            description=description,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        parser.add_argument(f"--{self.counted}", dest="count", type=int, default=self.default)
        parser.add_argument("--seed", type=int, default=1)
        parser.add_argument("--workers", type=int, default=2)
        given = parser.parse_args()
        began = time.monotonic()
        found = next(self.differences(given.count, given.seed, given.workers), None)
        took = time.monotonic() - began
        sys.stdout.write(
            f"seed {given.seed}: {given.count} {self.counted} compared in {took:.0f} s on: {on}\n",
        )
        sys.stdout.write(f"{found or 'no difference'}\n")
        sys.exit(found is not None)

    def _batch(self, seed: int, batch: int) -> list[str]:
        numbers = range(batch * self.cases_in_batch, (batch + 1) * self.cases_in_batch)
        return [told for number in numbers if (told := self.compare(seed, number)) is not None]
