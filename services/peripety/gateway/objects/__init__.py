"""Answers that are objects: found in what a model wrote, held against their schema, shown while they grow."""
