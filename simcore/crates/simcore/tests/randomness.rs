//! Statistical tests of draws, in the orders in which the engine uses them.
//!
//! They are the fast part of the tests before version 1 of the random numbers was frozen. The draws are
//! constant, so the tests are deterministic.
#![expect(clippy::cast_precision_loss, reason = "counts are small")]

use std::collections::HashSet;

use simcore::rng::{draw, run_seed, stream_key, unit};

const DRAWS: usize = 100_000;
const TURNS: u64 = 50;
/// Accepted deviation of a figure in standard deviations, for some ten thousand figures.
const SIGMAS: f64 = 5.5;

/// A draw under a seed and a stream, with one bit of an input flipped.
type Changed = fn(u64, u64, u64) -> u64;

/// Return draws that differ in one input only, and draws of a dry-run.
fn orders() -> [(&'static str, Vec<u64>); 6] {
    let (event, policy) = (stream_key("event"), stream_key("policy"));
    let count = DRAWS as u64;
    let seed = run_seed(1, 0);
    [
        ("runs", (0..count).map(|run| draw(run_seed(1, run), event, 1, 0)).collect()),
        ("turns", (1..=count).map(|turn| draw(seed, event, turn, 0)).collect()),
        ("indices", (0..count).map(|index| draw(seed, policy, 1, index)).collect()),
        ("seeds", (0..count).map(|seed| draw(seed, event, 1, 0)).collect()),
        (
            "streams",
            (0..count).map(|number| draw(seed, stream_key(&format!("roll:kind:{number}")), 1, 0)).collect(),
        ),
        (
            "played",
            (0..count)
                .map(|number| {
                    let (run, rest) = (number / (TURNS * 5), number % (TURNS * 5));
                    let (turn, index) = (rest / 5 + 1, rest % 5);
                    let seed = run_seed(1, run);
                    if index == 4 { draw(seed, event, turn, 0) } else { draw(seed, policy, turn, index) }
                })
                .collect(),
        ),
    ]
}

/// Return the correlation of pairs of numbers in [0, 1).
fn correlation(pairs: impl ExactSizeIterator<Item = (u64, u64)>) -> (f64, usize) {
    let count = pairs.len();
    let sum: f64 = pairs.map(|(a, b)| (unit(a) - 0.5) * (unit(b) - 0.5)).sum();
    (sum / count as f64 * 12.0, count)
}

fn assert_uncorrelated(what: &str, (correlation, count): (f64, usize)) {
    assert!(correlation.abs() < SIGMAS / (count as f64).sqrt(), "{what}: {correlation}");
}

#[test]
fn every_bit_is_set_half_of_the_time() {
    for (name, values) in orders() {
        for bit in 0..64 {
            let set = values.iter().filter(|&value| value >> bit & 1 == 1).count();
            let off = (set as f64 - DRAWS as f64 / 2.0) / (DRAWS as f64 / 4.0).sqrt();
            assert!(off.abs() < SIGMAS, "{name}: bit {bit} is off by {off} standard deviations");
        }
    }
}

#[test]
fn numbers_are_uniform() {
    for (name, values) in orders() {
        let mut buckets = [0.0; 1024];
        for value in values {
            buckets[usize::try_from(value >> 54).unwrap()] += 1.0;
        }
        let expected = DRAWS as f64 / 1024.0;
        let chi: f64 = buckets.iter().map(|count| (count - expected) * (count - expected) / expected).sum();
        // Of 1,023 degrees of freedom, whose standard deviation is 45.
        assert!((chi - 1023.0).abs() < SIGMAS * 45.2, "{name}: {chi}");
    }
}

#[test]
fn successive_draws_are_uncorrelated() {
    for (name, values) in orders() {
        for lag in (1..=64).chain([250, 500, 1000]) {
            let pairs = values.iter().copied().zip(values.iter().copied().skip(lag));
            assert_uncorrelated(&format!("{name}, lag {lag}"), correlation(pairs));
        }
    }
}

#[test]
fn streams_of_one_turn_are_uncorrelated() {
    let [event, policy, roll] = ["event", "policy", "roll:kind:target"].map(stream_key);
    for (one, other) in [(event, policy), (event, roll), (policy, roll)] {
        let pairs: Vec<_> = (0..DRAWS as u64)
            .map(|run| run_seed(1, run))
            .map(|seed| (draw(seed, one, 1, 0), draw(seed, other, 1, 0)))
            .collect();
        assert_uncorrelated("two streams", correlation(pairs.into_iter()));
    }
}

/// Each input bit flips every output bit half of the time.
#[test]
fn a_flipped_input_bit_flips_half_of_the_output() {
    const SAMPLES: u64 = 2_000;
    let key = stream_key("event");
    let inputs: [(&str, u32, Changed); 4] = [
        ("seed", 64, |seed, key, flip| draw(seed ^ flip, key, 7, 0)),
        ("stream", 64, |seed, key, flip| draw(seed, key ^ flip, 7, 0)),
        ("turn", 20, |seed, key, flip| draw(seed, key, 7 ^ flip, 0)),
        ("index", 20, |seed, key, flip| draw(seed, key, 7, flip)),
    ];
    for (name, bits, changed) in inputs {
        for bit in 0..bits {
            let mut flips = [0.0; 64];
            for sample in 0..SAMPLES {
                let seed = run_seed(1, sample);
                let difference = changed(seed, key, 0) ^ changed(seed, key, 1 << bit);
                for (place, count) in flips.iter_mut().enumerate() {
                    *count += (difference >> place & 1) as f64;
                }
            }
            for (place, count) in flips.iter().enumerate() {
                let off = (count - SAMPLES as f64 / 2.0) / (SAMPLES as f64 / 4.0).sqrt();
                assert!(off.abs() < SIGMAS, "{name}: bit {bit} changes bit {place} {count} times");
            }
        }
    }
}

#[test]
fn a_million_draws_of_a_dry_run_are_distinct() {
    let (event, policy) = (stream_key("event"), stream_key("policy"));
    let mut whole = HashSet::new();
    let mut upper = HashSet::new();
    for run in 0..10_486 {
        let seed = run_seed(1, run);
        for turn in 1..=TURNS {
            for value in [draw(seed, policy, turn, 0), draw(seed, event, turn, 0)] {
                whole.insert(value);
                upper.insert(value >> 32);
            }
        }
    }
    let count: usize = 10_486 * 100;
    assert_eq!(whole.len(), count);
    // The upper halves, which choices use, collide as often as random 32-bit numbers.
    let expected = (count * count) as f64 / 2f64.powi(33);
    let met = (count - upper.len()) as f64;
    assert!((met - expected).abs() < SIGMAS * expected.sqrt(), "{met} for {expected}");
}
