//! Bulk validation: from the bytes of many documents to canonical, valid scenarios, without findings.
//!
//! # Design
//!
//! The module answers one question: is a document certainly valid? A certainly valid document gets its
//! canonical form and its hash. For every other document the answer is `None`. The reference core then
//! validates it and writes the findings. Most documents of a batch are valid, so the slow path is rare.
//!
//! Documents are read into an arena, and their values borrow from the text. Most documents are checked and
//! dropped.
//!
//! # Invariants
//!
//! - A document that this module accepts has no finding in the reference core. A property test compares both.
//! - The reverse is not required. If a check would be intricate here, it is strict instead.
//! - It creates neither messages nor source positions, so the findings have one author.
//!
//! # Rejected alternatives
//!
//! - Findings in Rust: two implementations of all messages would have to stay equal.
//! - A general JSON Schema validator: the schema alone takes it longer than this module takes for everything
//!   (docs/explanation/performance.md).
//! - A thread pool: it does not survive `fork`. Threads live as long as one call.

mod checks;
mod effects;
mod logic;
mod schema;
mod shapes;
mod spec;
mod world;

use std::borrow::Cow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use bumpalo::Bump;

use crate::canonical_json;
use crate::strict_json;

/// A document without findings. `Program::new` accepts its canonical form.
#[derive(Debug)]
pub struct ValidatedSpec<'d> {
    /// The document in canonical form, borrowed if the input was canonical.
    pub document: Cow<'d, [u8]>,
    /// SHA-256 of the canonical form in lower-case hexadecimal digits.
    pub hash: String,
}

/// Documents that a thread fetches at a time. Few, because they differ in size.
const PIECE: usize = 8;

/// Validate many documents on several threads. The result is `None` if a document may have findings.
#[must_use]
pub fn validate_many<D: AsRef<[u8]> + Sync>(
    documents: &[D],
    threads: usize,
) -> Vec<Option<ValidatedSpec<'_>>> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    let work = || {
        let mut arena = Bump::new();
        loop {
            let start = next.fetch_add(PIECE, Ordering::Relaxed);
            let Some(rest) = documents.get(start..).filter(|rest| !rest.is_empty()) else { return };
            let piece: Vec<_> =
                rest.iter().take(PIECE).map(|document| validate_one(document.as_ref(), &mut arena)).collect();
            done.lock().unwrap_or_else(PoisonError::into_inner).push((start, piece));
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads.min(documents.len().div_ceil(PIECE)) {
            // If a thread cannot be started, the current thread does the work.
            drop(thread::Builder::new().spawn_scoped(scope, work));
        }
        work();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|(start, _)| *start);
    done.into_iter().flat_map(|(_, piece)| piece).collect()
}

/// Validate one document. The arena is reset first.
fn validate_one<'d>(document: &'d [u8], arena: &mut Bump) -> Option<ValidatedSpec<'d>> {
    arena.reset();
    let (root, is_canonical) = strict_json::borrow(document, arena).ok()?;
    let spec = schema::spec(&root)?;
    if !checks::are_sound(&spec) {
        return None;
    }
    let document = if is_canonical {
        Cow::Borrowed(document)
    } else {
        Cow::Owned(canonical_json::text_of(&root, document.len()).ok()?.into_bytes())
    };
    if checks::has_forbidden_key(&root, &document) || checks::may_have_variants(&spec, &document) {
        return None;
    }
    let hash = canonical_json::sha256_hex(&document);
    Some(ValidatedSpec { document, hash })
}
