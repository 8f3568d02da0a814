"""Small mistakes in documents and expressions, whatever they are made in: what mutants begin with."""
