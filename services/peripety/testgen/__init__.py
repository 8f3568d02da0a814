"""Tests for a task: written one at a time in rounds with reflection, run, and measured by what they catch."""
