"""One batch of any length, whose memory must not grow: `make soak-batch ITEMS=1000000`.

Specifications are streamed, with damaged and repeated ones among them: all of them up to the static checks,
and one for each fifty through the dice. The exit code is 1 when memory grows, or a verdict is missing.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from peripety.certification.options import DryRunOptions
from peripety.scenario import batch
from peripety.scenario.spec_generator.generator import generate_spec
from peripety.scenario.types import ValidationLevel

if TYPE_CHECKING:
    from collections.abc import Iterator


MOST_MIB = 300
GROWTH_MIB = 40
PATTERNS = 500
LOOKS = 20
PLAYED = 50

STATIC = batch.BatchOptions()
DICE = batch.BatchOptions(ValidationLevel.DRY_RUN, DryRunOptions(max_runs=64, horizon=10))


def main(items: int) -> int:
    """Stream through both levels, and print whether memory stayed flat."""
    return max(_flat(STATIC, items), _flat(DICE, max(items // PLAYED, LOOKS)))


def _flat(options: batch.BatchOptions, items: int) -> int:
    """Stream so many specifications; 0 when there was a verdict on each, in memory that does not grow."""
    started, given, failed, sizes = time.perf_counter(), 0, 0, []
    for given, (_, verdict) in enumerate(batch.validate(_stream(items), options), start=1):
        failed += verdict.error is not None
        if given % max(1, items // LOOKS) == 0:
            sizes.append(_resident())
    settled, last = sizes[len(sizes) // 4], max(sizes)
    is_flat = last <= MOST_MIB and last - settled <= GROWTH_MIB
    seconds = time.perf_counter() - started
    sys.stdout.write(
        f"{options.level.name.lower()}: {given - failed:,} of {items:,} in {seconds:.1f} s,"
        f" {given / seconds:,.0f} a second,"
        f" {settled:.0f} MiB after a quarter, at most {last:.0f} MiB: {'flat' if is_flat else 'NOT flat'}\n",
    )
    return 0 if is_flat and given == items and not failed else 1


def _stream(items: int) -> Iterator[tuple[int, bytes]]:
    """Specifications like no other, but for each tenth, which is damaged, and each eleventh, a repetition."""
    patterns = [generate_spec(7, index).split(b'"name":"', 1) for index in range(PATTERNS)]
    for number in range(items):
        before, after = patterns[number % PATTERNS]
        name = b"" if number % 11 == 0 else b"%d " % number
        document = b"".join((before, b'"name":"', name, after))
        yield number, document[: number % len(document)] if number % 10 == 0 else document


def _resident() -> float:
    """Memory of this process, in MiB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096 / 2**20


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
