"""Script files: patterns, answers, timing and faults of the scripted LLM."""
