//! Runs cut into pieces, which threads take one after the other.
//!
//! Threads live no longer than a call. Starting them costs some tens of microseconds, which the pieces are large enough
//! to make little of; in return there is no pool that a `fork` would leave without its threads.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::error::Result;

use super::report::Tally;

/// Few enough that threads finish together, many enough that starting one is worth it.
const PIECE: u64 = 1024;

/// As many threads as the machine runs at a time.
pub(super) fn all_threads() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Play a range of runs in pieces; what came of all of them, in their order.
pub(super) fn play(
    runs: Range<u64>,
    threads: usize,
    piece: impl Fn(Range<u64>) -> Result<Tally> + Sync,
) -> Result<Tally> {
    let pieces = (runs.end - runs.start).div_ceil(PIECE);
    let threads = u64::try_from(threads).unwrap_or(1).min(pieces);
    if threads <= 1 {
        return piece(runs);
    }
    let next = AtomicU64::new(0);
    let done = Mutex::new(Vec::new());
    let work = || loop {
        let index = next.fetch_add(1, Ordering::Relaxed);
        let start = runs.start + index * PIECE;
        if start >= runs.end {
            return;
        }
        let tally = piece(start..runs.end.min(start + PIECE));
        done.lock().unwrap_or_else(PoisonError::into_inner).push((index, tally));
    };
    thread::scope(|scope| {
        for _ in 1..threads {
            // Where no thread can be had, this one does the work.
            drop(thread::Builder::new().spawn_scoped(scope, work));
        }
        work();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|(index, _)| *index);
    let mut tallies = done.into_iter().map(|(_, tally)| tally);
    let Some(first) = tallies.next() else { return piece(runs.start..runs.start) };
    let mut all = first?;
    for tally in tallies {
        all.append(tally?);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::examples::program;

    #[test]
    fn each_run_is_in_one_piece() {
        let program = program("{}", &[]);
        for (runs, threads) in [(7..7, 4), (7..8, 4), (7..5_000, 1), (7..5_000, 3), (0..2 * PIECE, 8)] {
            let seen = Mutex::new(Vec::new());
            play(runs.clone(), threads, |piece| {
                seen.lock().unwrap().extend(piece);
                Ok(Tally::new(&program))
            })
            .unwrap();
            let mut seen = seen.into_inner().unwrap();
            seen.sort_unstable();
            assert!(seen.into_iter().eq(runs));
        }
    }
}
