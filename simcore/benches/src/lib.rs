//! What the engine is measured with: the reference scenarios, and hand-written loops of three of them.

pub mod cases;
pub mod handwritten;
