"""Gateway to language models.

One protocol covers all providers, stored conversations and structured answers with one repair.
"""
