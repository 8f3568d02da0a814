"""Certificates: statistics per persona, verdict, report."""
