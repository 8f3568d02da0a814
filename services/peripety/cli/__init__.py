"""The command line: `peripety play`, `serve`, `generate`, `validate`, `dry-run`.

Each command is a module; what it needs beyond this package is imported when it runs, so that help and usage
errors appear at once. Results go to standard output, everything else to standard error. Exit codes:
0 success; 1 the work failed or found something wrong; 2 the command was used wrongly; 130 stopped by Ctrl-C.
"""

from peripety.cli.commands import app, main

__all__ = ["app", "main"]
