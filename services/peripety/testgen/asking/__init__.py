"""Prompts of test generation, and parsing of tests from response streams."""
