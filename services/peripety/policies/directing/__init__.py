"""Coverage generation: scenarios for coverage gaps, and minimal suites."""
