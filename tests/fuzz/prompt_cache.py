"""Random conversations, each prompt cache read and write held to its prediction: `make soak-prompt-cache`.

    python -m fuzz.prompt_cache --conversations 100000 --provider anthropic --seed 1

A conversation depends on the seed and its number alone, so that one that fails can be played again by itself.
"""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from support.gateway.cache_oracle import PROVIDERS, Tally, converse

CONVERSATIONS_IN_BATCH = 250
BATCHES_BETWEEN_LINES = 40


def main() -> None:
    """Run the given number of conversations; a wrong prediction ends the run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--conversations", type=int, default=100_000, help="how many")
    parser.add_argument("--provider", choices=PROVIDERS, default="anthropic", help="who is asked")
    parser.add_argument("--seed", type=int, default=1, help="makes a run repeatable")
    given = parser.parse_args()
    begin = time.monotonic()
    total = Tally()
    batches = range(0, given.conversations, CONVERSATIONS_IN_BATCH)
    with ProcessPoolExecutor() as pool:
        tallies = pool.map(partial(_batch, given.seed, given.conversations, given.provider), batches)
        for number, tally in enumerate(tallies, 1):
            total += tally
            if number % BATCHES_BETWEEN_LINES == 0:
                seconds = time.monotonic() - begin
                sys.stdout.write(f"{number * CONVERSATIONS_IN_BATCH:,} conversations in {seconds:.0f} s\n")
                sys.stdout.flush()
    sys.stdout.write(
        f"{given.provider}, seed {given.seed}: {given.conversations:,} conversations,"
        f" {total.requests:,} requests, no prediction wrong\n"
        f"  {total.reading:,} read, {total.writing:,} wrote, {total.missed:,} found more than predicted\n"
        f"  requests by markers: {dict(sorted(total.markers.items()))}\n",
    )


def _batch(seed: int, conversations: int, provider: str, first: int) -> Tally:
    total = Tally()
    for number in range(first, min(first + CONVERSATIONS_IN_BATCH, conversations)):
        total += converse(f"{seed}:{number}", PROVIDERS[provider])
    return total


if __name__ == "__main__":
    main()
