"""Write the expected results of the golden vectors from the reference core.

Run `python tests/conformance/bless.py`. The inputs stand in the vectors themselves; a changed expectation is
a changed meaning, to be read in the diff.
"""

from __future__ import annotations

import json
from pathlib import Path

from peripety.engine._backend import load_backend
from support.engine.vectors import VECTORS, expectation


def main() -> None:
    """Recompute every file."""
    core = load_backend("python")
    for path in sorted(Path(VECTORS).glob("*.json")):
        document = json.loads(path.read_text("utf-8"))
        for case in document["cases"]:
            case["expect"] = expectation(core, document["kind"], case)
        path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
