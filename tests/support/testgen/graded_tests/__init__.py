"""Tasks with hidden suites, models of graded quality that know the suites, and ways to request tests."""
