"""Generation loop: request, merge, evaluate, repair."""
