"""Delivery of an answer: the time of each chunk, faults on the way, and the end of the response."""
