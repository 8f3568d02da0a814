"""Small changes of rules, and which scenarios notice them."""
