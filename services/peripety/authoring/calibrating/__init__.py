"""Calibration by simulation: the random persona loses about half of its runs, and planning wins."""
