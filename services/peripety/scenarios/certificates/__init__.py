"""Certificates: how fair a scenario is, measured and proved, in a document that anyone can compute again."""
