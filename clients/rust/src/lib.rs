//! Rust client of Peripety: turns as streams that survive a lost connection, typed errors, batches, progress of long
//! work, and the verification of exported sessions.
//!
//! ```no_run
//! # async fn example() -> peripety::Result<()> {
//! use peripety::api::session::v1::{CreateSessionRequest, TakeTurnRequest, turn_event::Event};
//! use peripety::{Client, StreamExt};
//!
//! let client = Client::connect("127.0.0.1:50051")?;
//! let request = CreateSessionRequest { scenario_id: "scn_…".into(), ..Default::default() };
//! let mut session = client.sessions().create_session(request).await?.into_inner().session.unwrap_or_default();
//! let turn = TakeTurnRequest { input: "I listen.".into(), ..Default::default() };
//! let mut events = client.play(&mut session, turn);
//! while let Some(event) = events.next().await {
//!     if let Some(Event::NarrativeChunk(chunk)) = event?.event {
//!         print!("{}", chunk.text);
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Messages and stubs are in [`api`]. A request without a `request_id` gets a new one, so that a retry has no second
//! effect. Every future needs a Tokio runtime.

mod calls;
mod client;
mod errors;
mod streams;
mod transcript;

/// Messages and stubs of the contract.
pub mod api {
    #![allow(missing_docs, clippy::all, clippy::pedantic, rustdoc::all)]

    mod generated;
    pub(crate) mod methods;
    mod streamed;

    pub use generated::peripety::api::{agent, common, gateway, policy, scenario, session, testgen};
}

pub use calls::Calls;
pub use client::{Client, DEFAULT_ADDRESS, Settings};
pub use errors::{Error, Result};
pub use streams::{Numbered, Stream, Streamed, action, last};
pub use tokio_stream::StreamExt;
pub use transcript::{Transcript, TranscriptError, verify_transcript};
