"""Which numbers of a specification to move, and how far: for the gate's repair, and to any band asked for."""
