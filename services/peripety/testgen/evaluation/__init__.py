"""Stability, soundness, novelty of tests."""
