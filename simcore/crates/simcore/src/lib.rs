//! The engine of Peripety: scenarios are data, and runs are deterministic.
//!
//! It has the semantics of docs/reference/semantics.md and of the Python reference, byte for byte: the same canonical
//! states, diffs and reports, the same error codes and messages. It does no I/O.

mod bounds;
mod bulk_validation;
pub mod canonical_json;
mod change_log;
mod condition_distance;
mod dice;
mod document;
mod dry_run;
pub mod durations;
mod effects;
pub mod error;
mod ir;
mod json_node;
pub mod jsonlogic;
mod limits;
mod narrator_scope;
mod params;
pub mod paths;
pub mod patterns;
mod personas;
pub mod policies;
mod program;
pub mod rng;
mod simd;
mod state;
mod static_analysis;
pub mod strict_json;
mod turn;
pub mod value;
mod variants;

pub use bulk_validation::{ValidatedSpec, validate_many};
pub use bumpalo::Bump;
pub use dry_run::Executor;
pub use error::{Code, Error, Result};
pub use json_node::Node;
pub use policies::Policy;
pub use program::Program;
pub use simd::Isa;
pub use state::State;
pub use value::Value;
