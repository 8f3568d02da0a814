//! The engine of Peripety: scenarios as data, played deterministically.
//!
//! It means exactly what docs/semantics.md says and what the reference in Python does, byte for byte: the same
//! canonical states, diffs and reports, the same error codes and messages. It does no input or output.

pub mod border;
pub mod canonical;
mod detail;
mod distances;
mod dry_run;
pub mod durations;
mod effects;
pub mod error;
mod json;
mod lanes;
mod literals;
pub mod logic;
mod node;
mod params;
pub mod paths;
pub mod patterns;
mod personas;
mod plan;
pub mod policies;
mod program;
mod proofs;
mod read;
mod record;
pub mod rng;
mod rolls;
mod scope;
mod screen;
mod state;
mod turn;
pub mod value;

pub use bumpalo::Bump;
pub use dry_run::Executor;
pub use error::{Code, Error, Result};
pub use lanes::Isa;
pub use node::Node;
pub use policies::Policy;
pub use program::Program;
pub use screen::{Spotless, screen_all};
pub use state::State;
pub use value::Value;
