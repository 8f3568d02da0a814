//! Which documents are spotless: many of them at a time, and from bytes to programs.
//!
//! What is said here is only that nothing is wrong with a document. Where something is wrong, or might be, nothing is
//! said at all: the reference finds what it is, and words it. So there are neither messages nor places here, and where
//! a check would have to be intricate, it is strict instead.

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

/// A document with which nothing is wrong: `Program::new` takes its canonical form.
#[derive(Debug)]
pub struct ValidatedSpec<'d> {
    /// The document in canonical form; borrowed where that is how it was given.
    pub document: Cow<'d, [u8]>,
    /// SHA-256 of the canonical form, in lower-case hexadecimal digits.
    pub hash: String,
}

/// How many documents a thread takes at a time: few, since they differ in size.
const PIECE: usize = 8;

/// Screen many documents by some threads, which live no longer than the call; `None` for what may not be spotless.
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
            // Where no thread can be had, this one does the work.
            drop(thread::Builder::new().spawn_scoped(scope, work));
        }
        work();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|(start, _)| *start);
    done.into_iter().flat_map(|(_, piece)| piece).collect()
}

/// Screen one document; the arena is emptied for it.
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
    if checks::has_forbidden_key(&root, &document) {
        return None;
    }
    let hash = canonical_json::sha256_hex(&document);
    Some(ValidatedSpec { document, hash })
}
