//! Which of many literals occur in a text, at a cost that hardly depends on how many there are.
//!
//! Of each literal one part of 8, 4, 2 or 1 bytes is looked for, the one that fewest other literals have. At each
//! place of the text the part that begins there is looked up in a set of bits, then, rarely, in a table; what is
//! found there is compared.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

type Table<V> = HashMap<u64, V, BuildHasherDefault<Mixed>>;

/// Literals, by their rarest parts.
#[derive(Default)]
pub(super) struct Parts {
    literals: Vec<Literal>,
    levels: (Option<Level<8>>, Option<Level<4>>, Option<Level<2>>, Option<Level<1>>),
}

struct Literal {
    bytes: Box<[u8]>,
    /// Where the part begins in it.
    part: usize,
}

/// The parts of one length, and which literals have them.
struct Level<const N: usize> {
    /// Two bits of one word for each part: one access to memory tells that a part is none of them.
    words: Vec<u64>,
    shift: u32,
    literals: Table<Vec<u32>>,
}

impl Parts {
    /// Of literals, none of which is empty.
    pub(super) fn new(literals: Vec<Box<[u8]>>) -> Self {
        let mut parts = Self {
            literals: literals.into_iter().map(|bytes| Literal { bytes, part: 0 }).collect(),
            levels: (None, None, None, None),
        };
        parts.levels = (
            Level::new(&mut parts.literals, 8..usize::MAX),
            Level::new(&mut parts.literals, 4..8),
            Level::new(&mut parts.literals, 2..4),
            Level::new(&mut parts.literals, 1..2),
        );
        parts
    }

    /// Tell each literal that occurs, by its number, with where it does for the first time.
    pub(super) fn find(&self, text: &[u8], mut tell: impl FnMut(usize, usize)) {
        let mut seen = HashSet::<u64, BuildHasherDefault<Mixed>>::default();
        let mut occurs = |number: u32, place: usize| {
            let Some(literal) = self.literals.get(number as usize) else { return };
            let Some(start) = place.checked_sub(literal.part) else { return };
            if text.get(start..).is_some_and(|rest| rest.starts_with(&literal.bytes))
                && seen.insert(u64::from(number))
            {
                tell(number as usize, start);
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
    /// The level of the literals of some lengths, which learn their part; none if there are none.
    fn new(literals: &mut [Literal], lengths: std::ops::Range<usize>) -> Option<Self> {
        let mut common = Table::<u32>::default();
        for literal in literals.iter().filter(|literal| lengths.contains(&literal.bytes.len())) {
            for part in parts_of::<N>(&literal.bytes) {
                *common.entry(part).or_default() += 1;
            }
        }
        let mut by_part = Table::<Vec<u32>>::default();
        for (literal, number) in literals.iter_mut().zip(0..) {
            if !lengths.contains(&literal.bytes.len()) {
                continue;
            }
            // Where words meet, a part is in fewer texts than within a word.
            let rarest = parts_of::<N>(&literal.bytes)
                .enumerate()
                .min_by_key(|(_, part)| (common.get(part).copied(), letters(*part)));
            if let Some((place, part)) = rarest {
                literal.part = place;
                by_part.entry(part).or_default().push(number);
            }
        }
        if by_part.is_empty() {
            return None;
        }
        // At least sixteen bits for each part: of the others about one in sixty is looked up in vain.
        let width = (by_part.len() / 4).next_power_of_two().trailing_zeros().clamp(1, 17);
        let mut words = vec![0; 1 << width];
        for &part in by_part.keys() {
            let (index, bits) = bits_of(part, 64 - width);
            if let Some(word) = words.get_mut(index) {
                *word |= bits;
            }
        }
        Some(Self { words, shift: 64 - width, literals: by_part })
    }

    fn find(&self, text: &[u8], occurs: &mut dyn FnMut(u32, usize)) {
        for (part, place) in parts_of::<N>(text).zip(0..) {
            let (index, bits) = bits_of(part, self.shift);
            let word = self.words.get(index).copied().unwrap_or_default();
            if word & bits == bits {
                self.look_up(part, place, occurs);
            }
        }
    }

    #[inline(never)]
    fn look_up(&self, part: u64, place: usize, occurs: &mut dyn FnMut(u32, usize)) {
        for &number in self.literals.get(&part).into_iter().flatten() {
            occurs(number, place);
        }
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

/// Which word a part has bits in, and which bits.
#[expect(clippy::cast_possible_truncation, reason = "no level has more words than can be numbered")]
fn bits_of(part: u64, shift: u32) -> (usize, u64) {
    let hash = mixed(part);
    ((hash >> shift) as usize, 1 << (hash >> (shift - 6) & 63) | 1 << (hash >> (shift - 12) & 63))
}

fn letters(part: u64) -> usize {
    part.to_le_bytes().iter().filter(|byte| byte.is_ascii_lowercase()).count()
}

fn mixed(part: u64) -> u64 {
    part.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Hashes one number; tables need no more, since what is in them comes from whoever writes the patterns.
#[derive(Default)]
pub(super) struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        let product = mixed(self.0 ^ number);
        self.0 = product ^ (product >> 32);
    }
}
