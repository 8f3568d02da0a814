"""Recording: answers of a provider or of the simulator become a script that reproduces them."""
