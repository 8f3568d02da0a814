//! Benchmark support: the reference scenarios, and handwritten loops of three of them.

pub mod cases;
pub mod handwritten;
