"""Common driver of the fuzzers: numbered cases, distributed to processes, up to a given count."""

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
    """Comparison of random cases, each of which depends on the seed and its number alone.

    Attributes:
        compare: returns the difference in the case of a seed and a number; None if both are equal.
        counted: the unit that is counted, such as `pairs`; also the name of the option for the count.
        in_case: minimum number of units in a case.
        cases_in_batch: number of cases that a process runs at once.
        default: default count.
    """

    compare: Callable[[int, int], str | None]
    counted: str
    in_case: int
    cases_in_batch: int
    default: int = 1_000_000

    def differences(self, count: int, seed: int, workers: int) -> Iterator[str]:
        """Yield the differences over at least this many units."""
        batches = -(-count // (self.in_case * self.cases_in_batch))
        with ProcessPoolExecutor(workers) as pool:
            for told in pool.map(partial(self._batch, seed), range(batches)):
                yield from told

    def main(self, description: str | None, on: str) -> None:
        """Run the command line.

        Args:
            description: text of `--help`.
            on: the compared implementations.
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
