"""Certificates: the measured and proven fairness of a scenario, in a reproducible document."""
