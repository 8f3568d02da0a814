"""Entry point of the `peripety` command and of `python -m peripety`."""

import sys

_EXIT_INTERRUPTED = 130


def main() -> None:
    """Run the command line and exit the process. Ctrl-C prints no traceback, even during the imports."""
    try:
        from peripety.cli.app import main as run  # noqa: PLC0415 - Ctrl-C during the import is handled

        run()
    except KeyboardInterrupt:
        sys.exit(_EXIT_INTERRUPTED)


if __name__ == "__main__":
    main()
