"""Language models behind one protocol: providers, conversations, structured answers with one repair."""
