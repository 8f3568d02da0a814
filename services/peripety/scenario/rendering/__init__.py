"""SVG and HTML markup."""
