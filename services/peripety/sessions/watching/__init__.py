"""Watch streams of sessions: recorded events, then live ones, projected once for all watchers of the same
view.
"""
