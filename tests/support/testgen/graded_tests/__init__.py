"""Tasks with hidden suites, models of graded quality that know them, and ways to ask these for tests."""
