"""Prints whole numbers as ranges: `ranges.py 1 2 3 5` prints `1-3 5`. task.md describes the task."""

import sys

LARGEST = 999


def spans(numbers: list[int]) -> list[str]:
    """Each number once, in order, neighbours as a range."""
    found: list[list[int]] = []
    for number in sorted(set(numbers)):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return [str(first) if first == last else f"{first}-{last}" for first, last in found]


def main(words: list[str]) -> int:
    """Print the ranges of the numbers that words are; the exit code."""
    if not words:
        words = sys.stdin.read().split()
    try:
        numbers = [int(word) for word in words]
    except ValueError:
        print("not a whole number", file=sys.stderr)
        return 2
    if any(number < 0 or number > LARGEST for number in numbers):
        print(f"not from 0 to {LARGEST}", file=sys.stderr)
        return 3
    print(" ".join(spans(numbers)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
