"""From a written policy to verified rules, and to scenarios that prove them."""
