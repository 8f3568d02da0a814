"""A text becomes a blueprint, in its own words."""
