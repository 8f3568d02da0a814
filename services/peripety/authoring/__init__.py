"""Scenarios from words, without a model: blueprints, and the rules and numbers that follow from them."""
