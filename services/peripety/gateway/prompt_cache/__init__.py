"""Prompt-cache planning and prediction."""
