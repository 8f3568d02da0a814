"""Test generation: tests written by a model in rounds, run on a subject, and measured by mutants."""
