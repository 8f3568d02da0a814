"""Batch validation on Dask: `python -m peripety.scenario.batch.on_dask IN OUT --scheduler HOST:PORT`.

Each worker needs the package, and access to the files under the same names.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from distributed import Client, as_completed

from peripety.errors import PeripetyError
from peripety.scenario.batch.partitions import FORMS, JobOutput, Totals, split_inputs
from peripety.scenario.batch.verdicts import BatchOptions
from peripety.scenario.types import ValidationLevel

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peripety.scenario.batch.partitions import InputSplit


def validate_parts(client: Client, parts: Sequence[InputSplit], output: JobOutput) -> Iterator[Totals]:
    """Validate the unfinished parts on a cluster, and yield the totals of each.

    A part whose worker dies is assigned to another one.

    Raises:
        FailedPreconditionError: `OUTPUT_EXISTS`.
        KilledWorker: several workers died on the same part.
    """
    numbers = output.prepare(parts)
    futures = client.map(output.write, numbers, [parts[number] for number in numbers], pure=False)
    for _, tally in as_completed(futures, with_results=True):
        yield tally
    output.clean_up()


def _main() -> int:
    given = _parse_arguments().parse_args()
    options = BatchOptions(ValidationLevel[given.level.upper().replace("-", "_")])
    try:
        parts = list(split_inputs(given.sources))
        with _connect(given.scheduler) as client:
            tallies = list(validate_parts(client, parts, JobOutput(str(given.out), options, given.form)))
    except PeripetyError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    documents, accepted = (sum(getattr(tally, name) for tally in tallies) for name in Totals.__slots__)
    known = f"; {len(parts) - len(tallies)} parts were complete already" if len(tallies) < len(parts) else ""
    sys.stderr.write(f"{accepted} of {documents} accepted in {len(tallies)} parts{known}\n")
    return int(accepted < documents)


def _connect(scheduler: str | None) -> Client:
    """Connect to a cluster; without an address, start a local one with a process per core."""
    return Client(scheduler) if scheduler else Client(threads_per_worker=1, dashboard_address=None)


def _parse_arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m peripety.scenario.batch.on_dask",
        description="Validate specifications on a Dask cluster, with an output file for each part.",
        epilog="Exit code 0: all documents of this run are accepted, 1: some are not, 2: the job failed.",
    )
    parser.add_argument(
        "sources",
        metavar="IN",
        nargs="+",
        type=Path,
        help="JSON Lines or Parquet, or a folder",
    )
    parser.add_argument("out", metavar="OUT", type=Path, help="a folder that every worker can write to")
    parser.add_argument(
        "--scheduler",
        metavar="HOST:PORT",
        help="address of the scheduler; default: a local cluster",
    )
    parser.add_argument("--level", choices=["schema", "static", "dry-run", "certificate"], default="static")
    parser.add_argument("--format", dest="form", choices=FORMS, default="parquet", help="of the results")
    return parser


if __name__ == "__main__":
    sys.exit(_main())
