"""Narration of turns by a language model, with a fallback narration if the model fails."""
