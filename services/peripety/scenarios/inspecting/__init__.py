"""What depends on what in a scenario, how much of it is at work when it is played, and a drawing of that."""
