"""Decision diagrams, equivalence, differences, lint."""
