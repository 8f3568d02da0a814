"""Scenarios from words, without asking a model: blueprints, and the rules and numbers that follow from them."""
