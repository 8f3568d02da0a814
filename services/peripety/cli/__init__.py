"""The command line, `peripety`: one module per command.

Commands import what they need beyond this package when they run, so that help and usage errors appear at
once.
Results go to standard output, everything else to standard error.

Exit codes: 0 success; 1 the work failed or found a problem; 2 wrong usage; 130 interrupted by Ctrl-C.
"""

from peripety.cli.commands import app, main

__all__ = ["app", "main"]
