"""Many interleaved conversations with the scripted LLM, each beside a model of it: `make soak-simulator`.

    python -m fuzz.conversations --operations 1000000 --conversations 10000 --seed 1

The steps depend on the seed alone, so that a run can be repeated.
"""

from __future__ import annotations

import argparse
import sys
import time

from peripety.llmsim import Simulator
from support.llmsim.simulator import SCENARIO, converse

STEPS_BETWEEN_LINES = 50_000


def main() -> None:
    """Run the given number of steps; an answer that differs from the model ends the run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--operations", type=int, default=1_000_000, help="how many steps")
    parser.add_argument("--conversations", type=int, default=10_000, help="how many at once")
    parser.add_argument("--seed", type=int, default=1, help="makes a run repeatable")
    given = parser.parse_args()
    begin = time.monotonic()

    def told(done: int) -> None:
        if done % STEPS_BETWEEN_LINES == 0:
            sys.stdout.write(f"{done:,} steps in {time.monotonic() - begin:.0f} s\n")
            sys.stdout.flush()

    try:
        converse(
            Simulator(SCENARIO),
            conversations=given.conversations,
            operations=given.operations,
            seed=given.seed,
            on_step=told,
        )
    except AssertionError as error:
        sys.exit(f"an answer is not the one of its own conversation: {error}")
    sys.stdout.write(
        f"seed {given.seed}: {given.conversations:,} conversations at once, every answer its own\n",
    )


if __name__ == "__main__":
    main()
