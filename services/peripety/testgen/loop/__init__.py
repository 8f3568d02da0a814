"""The loop of a test generation run: steps, limits, model calls, rounds and reflections."""
