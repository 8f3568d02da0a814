"""A run: rounds, reflection, budget."""
