"""Blueprint to rules: quantities at state paths, then actions, events and endings in given numbers."""
