"""HTML report of a certificate: one page with plots, without scripts and network access."""
