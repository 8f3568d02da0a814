"""A blueprint becomes rules: quantities at paths, actions, events and endings, in numbers that are given."""
