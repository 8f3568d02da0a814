//! The engine of Peripety: scenarios as data, played deterministically.
//!
//! It means exactly what docs/semantics.md says and what the reference in Python does, byte for byte: the same
//! canonical states, diffs and reports, the same error codes and messages. It does no input or output.

pub mod border;
pub mod canonical;
pub mod error;
pub mod logic;
pub mod paths;
pub mod rng;
pub mod value;

pub use error::{Code, Error, Result};
pub use value::Value;
