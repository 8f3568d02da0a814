//! Multi-literal search at a cost that hardly depends on the number of literals.
//!
//! The search looks for one part of 8, 4, 2 or 1 bytes of each literal: the part that fewest other literals
//! have. At each position of the text, a bit set (a Bloom filter) rejects most parts. A hash table resolves
//! the rest, and a comparison verifies them.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::iter;
use std::ops::Range;

type Table<V> = HashMap<u64, V, BuildHasherDefault<MixHasher>>;

/// Literals, indexed by their rarest parts.
#[derive(Default)]
pub(super) struct LiteralIndex {
    literals: Vec<Box<[u8]>>,
    levels: (Option<Level<8>>, Option<Level<4>>, Option<Level<2>>, Option<Level<1>>),
}

/// Parts of one length with their literals.
struct Level<const N: usize> {
    /// Bloom filter with two bits of one word for each part: one memory access rejects an unknown part.
    words: Vec<u64>,
    holders: Table<Bucket>,
}

/// Literals of a part. There is rarely more than one.
struct Bucket {
    first: BucketEntry,
    others: Vec<BucketEntry>,
}

/// A literal, with some of its bytes for a quick rejection.
struct BucketEntry {
    literal: u32,
    /// The position of the part in the literal.
    part: u32,
    /// The position of eight other bytes, and those bytes. Short literals have fewer.
    aside: u32,
    bytes: u64,
    mask: u64,
}

impl LiteralIndex {
    /// Build the index. No literal may be empty.
    pub(super) fn new(literals: Vec<Box<[u8]>>) -> Self {
        let levels = (
            Level::new(&literals, 8..usize::MAX),
            Level::new(&literals, 4..8),
            Level::new(&literals, 2..4),
            Level::new(&literals, 1..2),
        );
        Self { literals, levels }
    }

    /// Report each literal that occurs: its number and its first position.
    pub(super) fn find(&self, text: &[u8], mut report: impl FnMut(usize, usize)) {
        let mut seen = HashSet::<u64, BuildHasherDefault<MixHasher>>::default();
        let mut occurs = |number: usize, start: usize| {
            let Some(literal) = self.literals.get(number) else { return };
            if text.get(start..).is_some_and(|rest| rest.starts_with(literal)) && seen.insert(number as u64) {
                report(number, start);
            }
        };
        let (eight, four, two, one) = &self.levels;
        if let Some(level) = eight {
            level.find(text, &mut occurs);
        }
        if let Some(level) = four {
            level.find(text, &mut occurs);
        }
        if let Some(level) = two {
            level.find(text, &mut occurs);
        }
        if let Some(level) = one {
            level.find(text, &mut occurs);
        }
    }
}

impl<const N: usize> Level<N> {
    /// Build the level of the literals in a range of lengths, or return `None` if it is empty.
    fn new(literals: &[Box<[u8]>], lengths: Range<usize>) -> Option<Self> {
        let own = || (0..).zip(literals).filter(|(_, literal)| lengths.contains(&literal.len()));
        let mut common = Table::<u32>::default();
        for part in own().flat_map(|(_, literal)| parts_of::<N>(literal)) {
            *common.entry(part).or_default() += 1;
        }
        let mut holders = Table::<Bucket>::default();
        for (number, literal) in own() {
            // A part across a word boundary is in fewer texts than a part within a word.
            let rarest = (0..)
                .zip(parts_of::<N>(literal))
                .min_by_key(|(_, part)| (common.get(part).copied(), count_letters(*part)));
            let Some((place, part)) = rarest else { continue };
            match holders.entry(part) {
                Entry::Occupied(known) => {
                    known.into_mut().others.push(BucketEntry::new(number, literal, place));
                }
                Entry::Vacant(unknown) => {
                    unknown.insert(Bucket {
                        first: BucketEntry::new(number, literal, place),
                        others: Vec::new(),
                    });
                }
            }
        }
        if holders.is_empty() {
            return None;
        }
        // At least 32 bits for each part: one of two hundred other parts is looked up in vain.
        let width = (holders.len() / 2).next_power_of_two().trailing_zeros().clamp(1, 17);
        let mut words = vec![0; 1 << width];
        let last = words.len() - 1;
        for &part in holders.keys() {
            let (index, bits) = bits_of(part);
            if let Some(word) = words.get_mut(index & last) {
                *word |= bits;
            }
        }
        Some(Self { words, holders })
    }

    fn find(&self, text: &[u8], occurs: &mut dyn FnMut(usize, usize)) {
        let words = self.words.as_slice();
        let last = words.len() - 1;
        for (part, place) in parts_of::<N>(text).zip(0..) {
            let (index, bits) = bits_of(part);
            let word = words.get(index & last).copied().unwrap_or_default();
            if word & bits == bits {
                self.look_up(part, text, place, occurs);
            }
        }
    }

    #[inline(never)]
    fn look_up(&self, part: u64, text: &[u8], place: usize, occurs: &mut dyn FnMut(usize, usize)) {
        let Some(holders) = self.holders.get(&part) else { return };
        for holder in iter::once(&holders.first).chain(&holders.others) {
            let Some(start) = place.checked_sub(holder.part as usize) else { continue };
            if holder.may_occur_at(text, start) {
                occurs(holder.literal as usize, start);
            }
        }
    }
}

impl BucketEntry {
    #[expect(clippy::cast_possible_truncation, reason = "literals are few, and short")]
    fn new(literal: u32, bytes: &[u8], part: u32) -> Self {
        let aside = if part == 0 { bytes.len().saturating_sub(8) } else { 0 };
        let (mut shown, mut mask) = ([0; 8], [0; 8]);
        for ((shown, mask), byte) in shown.iter_mut().zip(&mut mask).zip(bytes.iter().skip(aside)) {
            (*shown, *mask) = (*byte, 0xFF);
        }
        let (bytes, mask) = (u64::from_le_bytes(shown), u64::from_le_bytes(mask));
        Self { literal, part, aside: aside as u32, bytes, mask }
    }

    /// Return True if the literal may begin there. Near the end of a text the answer is always True.
    fn may_occur_at(&self, text: &[u8], start: usize) -> bool {
        let aside = text.get(start + self.aside as usize..).and_then(<[u8]>::first_chunk);
        aside.is_none_or(|bytes| u64::from_le_bytes(*bytes) & self.mask == self.bytes)
    }
}

fn parts_of<const N: usize>(text: &[u8]) -> impl Iterator<Item = u64> {
    text.windows(N).map(|window| {
        let mut part = [0; 8];
        if let (Some(part), Some(window)) = (part.first_chunk_mut::<N>(), window.first_chunk::<N>()) {
            *part = *window;
        }
        u64::from_le_bytes(part)
    })
}

/// Return the word of a part by its lower bits, and its bits. The shifts are constant because this runs at
/// each position.
fn bits_of(part: u64) -> (usize, u64) {
    let hash = mix(part);
    ((hash >> 32) as u32 as usize, 1 << (hash >> 58) | 1 << (hash >> 52 & 63))
}

fn count_letters(part: u64) -> usize {
    part.to_le_bytes().iter().filter(|byte| byte.is_ascii_lowercase()).count()
}

fn mix(part: u64) -> u64 {
    part.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Hasher of one number. A stronger hash is unnecessary, because the author of the patterns provides the
/// keys.
#[derive(Default)]
pub(super) struct MixHasher(u64);

impl Hasher for MixHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        let product = mix(self.0 ^ number);
        self.0 = product ^ (product >> 32);
    }
}
