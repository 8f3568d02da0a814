"""pytest, JSON and JUnit export."""
