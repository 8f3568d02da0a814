"""Sizes become numbers, by playing: luck alone loses about every other run, and thinking pays."""
