"""A certificate for people: one page of HTML with its plots, which needs neither scripts nor a network."""
