"""What tests are worth: run, compared with one another, and held against mutants."""
