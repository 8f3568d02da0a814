"""`python -m peripety`: the same as the `peripety` command."""

from peripety.cli import main

if __name__ == "__main__":
    main()
