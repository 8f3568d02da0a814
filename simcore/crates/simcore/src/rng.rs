//! Random numbers: keyed and counter-based. Every draw is a pure function of its purpose.

use sha2::{Digest, Sha256};

/// Version of all functions in this module. It changes if any draw changes.
pub const RNG_VERSION: u64 = 1;

pub(crate) const INCREMENT: u64 = 0x9E37_79B9_7F4A_7C15;

/// Mix bits with the finaliser of SplitMix64.
#[must_use]
pub fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

/// Return the 64-bit key of a stream of draws, such as `event` or `policy`.
#[must_use]
pub fn stream_key(tag: &str) -> u64 {
    let digest: [u8; 32] = Sha256::digest(tag.as_bytes()).into();
    digest.iter().take(8).fold(0, |key, &byte| (key << 8) | u64::from(byte))
}

/// Return draw number `index` of a stream within a turn.
#[must_use]
pub fn draw(seed: u64, stream: u64, turn: u64, index: u64) -> u64 {
    let counter = (turn << 32).wrapping_add(index).wrapping_add(1);
    mix(mix(seed ^ stream).wrapping_add(INCREMENT.wrapping_mul(counter)))
}

/// Return the seed of dry-run number `run`. Consecutive runs follow the SplitMix64 sequence of `seed`.
#[must_use]
pub fn run_seed(seed: u64, run: u64) -> u64 {
    mix(seed.wrapping_add(INCREMENT.wrapping_mul(run.wrapping_add(1))))
}

/// Convert a draw to a number in [0, 1) with its top 53 bits.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "binary64 represents 53 bits exactly")]
pub fn unit(value: u64) -> f64 {
    (value >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
}

/// Convert a draw to one of `count` options, 0 … count − 1.
#[must_use]
pub fn choose(value: u64, count: u64) -> u64 {
    let product = u128::from(value >> 32) * u128::from(count);
    u64::try_from(product >> 32).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_follow_splitmix64() {
        let seeds: Vec<u64> = (0..3).map(|run| run_seed(1_234_567, run)).collect();
        assert_eq!(seeds, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn unit_is_below_one() {
        assert!(unit(u64::MAX) < 1.0);
        assert_eq!(unit(0), 0.0);
    }

    #[test]
    fn choose_is_below_its_count() {
        assert_eq!(choose(u64::MAX, 7), 6);
        assert_eq!(choose(0, 7), 0);
        assert!(choose(u64::MAX, u64::MAX) < u64::MAX);
    }
}
