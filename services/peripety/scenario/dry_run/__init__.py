"""Simulations without a model, difficulty gate, drift."""
