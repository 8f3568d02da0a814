"""From a written policy to rules, and to scenarios that they pass: write, filter, verify, judge, repair."""
