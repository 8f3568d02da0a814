//! Work pieces: ranges of runs that threads process in order.
//!
//! Threads live as long as one call. Their start costs some tens of microseconds, which is little compared
//! with a piece. A thread pool was rejected: after a `fork` it would have no threads.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::error::Result;
use crate::personas::Persona;

use super::report::Tally;

/// Minimum number of runs for a thread. It is smaller for the planner, which plays dozens of turns for each
/// turn, and for personas that are never vectorised.
const LEAST: u64 = 1024;
const LEAST_SLOW: u64 = 64;
/// Pieces for each thread. More pieces balance the load; fewer pieces waste less, because the last runs of a
/// piece leave lanes idle.
const PIECES_PER_THREAD: u64 = 8;

/// Return the number of threads that the machine runs in parallel.
pub(super) fn all_threads() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Play a range of runs in pieces. Return their counts in order.
pub(super) fn play(
    runs: Range<u64>,
    persona: Persona,
    threads: usize,
    piece: impl Fn(Range<u64>) -> Result<Tally> + Sync,
) -> Result<Tally> {
    let number = runs.end - runs.start;
    let is_slow = matches!(persona, Persona::Planner | Persona::Curious | Persona::Par);
    let least = if is_slow { LEAST_SLOW } else { LEAST };
    let threads = u64::try_from(threads).unwrap_or(1).min(number.div_ceil(least));
    if threads <= 1 {
        return piece(runs);
    }
    let size = number.div_ceil(threads * PIECES_PER_THREAD).max(least);
    let next = AtomicU64::new(0);
    let done = Mutex::new(Vec::new());
    let work = || loop {
        let index = next.fetch_add(1, Ordering::Relaxed);
        let start = runs.start + index * size;
        if start >= runs.end {
            return;
        }
        let tally = piece(start..runs.end.min(start + size));
        done.lock().unwrap_or_else(PoisonError::into_inner).push((index, tally));
    };
    thread::scope(|scope| {
        for _ in 1..threads {
            // If a thread cannot be started, the current thread does the work.
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
    use crate::dry_run::Options;
    use crate::ir::examples::program;
    use crate::strict_json;

    #[test]
    fn each_run_is_in_exactly_one_piece() {
        let program = program("{}", &[]);
        let options = br#"{"runs": 1, "first_run": 0, "seed": "1", "persona": "idle"}"#;
        let options = Options::new(&strict_json::parse(options).unwrap(), 1).unwrap();
        for (runs, persona, threads) in [
            (7..7, Persona::Idle, 4),
            (7..8, Persona::Idle, 4),
            (7..5_000, Persona::Idle, 1),
            (7..5_000, Persona::Idle, 3),
            (0..2 * LEAST, Persona::Idle, 8),
            (0..40_000, Persona::Idle, 2),
            (7..500, Persona::Planner, 3),
        ] {
            let seen = Mutex::new(Vec::new());
            play(runs.clone(), persona, threads, |piece| {
                seen.lock().unwrap().extend(piece);
                Ok(Tally::new(&program, &options))
            })
            .unwrap();
            let mut seen = seen.into_inner().unwrap();
            seen.sort_unstable();
            assert!(seen.into_iter().eq(runs));
        }
    }
}
