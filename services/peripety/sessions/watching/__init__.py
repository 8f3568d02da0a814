"""Watch streams: recorded events, then live ones, projected once for all watchers of a view."""
