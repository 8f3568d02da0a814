"""Answering the same request the same way: what it was answered with is kept, and its events are numbered."""
