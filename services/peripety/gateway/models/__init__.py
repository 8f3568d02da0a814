"""Model catalog: names, capabilities, prices."""
