"""Script files: types, schema, source positions."""
