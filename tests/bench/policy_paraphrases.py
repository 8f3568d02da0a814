"""Generated sentences of policies: calls that the reader allows against their reference meaning.

`make fuzz-policy-reader COUNT=100000 SEED=0`. Prints the unsafe texts and both rates.
"""

from __future__ import annotations

import os
import sys
from collections import Counter

from support.policy_paraphrases import decide_paraphrase, iter_paraphrases

_MOST_SHOWN = 40


def main() -> int:
    """Print the figures; return 1 if a call is allowed against its text."""
    count, seed = int(os.environ.get("COUNT", "100000")), int(os.environ.get("SEED", "0"))
    counts: Counter[str] = Counter()
    for made in iter_paraphrases(count, seed):
        decided, is_followed = decide_paraphrase(made)
        pairs = [*zip(decided, made.meaning, strict=True)]
        unsafe = sum(actual == "allow" != meant for actual, meant in pairs)
        counts["followed"] += is_followed
        counts["unsafe"] += unsafe
        counts["unsafe texts"] += bool(unsafe)
        if is_followed and not made.is_strange:
            counts["allowed"] += sum(meant == "allow" for _, meant in pairs)
            counts["needless"] += sum(meant == "allow" != actual for actual, meant in pairs)
            counts["otherwise"] += sum(meant != actual for actual, meant in pairs)
        is_wrong = unsafe or (is_followed and not made.is_strange and [*made.meaning] != decided)
        if is_wrong and counts["shown"] < _MOST_SHOWN:
            counts["shown"] += 1
            kind = "unsafe" if unsafe else "otherwise"
            sys.stdout.write(f"  {kind}{' (strange word)' if made.is_strange else ''}: {made.text}\n")
            sys.stdout.flush()
    sys.stdout.write(
        f"{count} texts, seed {seed}: {counts['unsafe']} unsafe calls in {counts['unsafe texts']} texts"
        " (must be 0);"
        f" {counts['followed'] / count:.1%} followed; {counts['needless']} of {counts['allowed']} calls that"
        f" followed texts allow needlessly stopped, {counts['otherwise']} decided otherwise\n"
    )
    return 1 if counts["unsafe"] else 0


if __name__ == "__main__":
    sys.exit(main())
