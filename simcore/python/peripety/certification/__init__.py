"""Certification of scenarios: simulations of players, the difficulty gate, and certificates.

`certificate.certify_document` certifies a document in one call. The docstring of `certificate` has the order
of the work and the reasons.
"""
