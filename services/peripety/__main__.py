"""`python -m peripety`: the same as the `peripety` command."""

from peripety.cli.app import main

if __name__ == "__main__":
    main()
