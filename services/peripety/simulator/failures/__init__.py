"""What can go wrong: the kinds of failures, and what each does to an answer."""
