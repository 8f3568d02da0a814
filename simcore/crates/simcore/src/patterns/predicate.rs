//! Predicates: comparison of one text with a literal or a regular expression.

use std::sync::{Arc, OnceLock};

use memchr::memmem;
use regex::bytes::{RegexSet, RegexSetBuilder};
use regex::{Regex, RegexBuilder};

// Limits above those of Python, so the library rejects nothing that both cores must accept.
const MOST_BYTES: usize = 1 << 28;
const MOST_NESTED: u32 = 1_000;
// A cache of DFA states grows with its use. If it is too small, it is cleared repeatedly.
const MOST_CACHED: usize = 1 << 24;

/// A predicate of one text.
pub struct Predicate {
    pub(super) test: Test,
    /// Case-folded literals, one of which a matching text contains when folded. `None` if unknown.
    pub(super) literals: Option<Vec<String>>,
}

pub(super) enum Test {
    Equals { text: String, folds: bool },
    Contains { text: String, folds: bool },
    Search(Search),
}

/// A regular expression, compiled at its first use. Most are never used.
pub(super) struct Search {
    pub(super) pattern: String,
    /// For each list, a matching text contains one of its literals when folded.
    pub(super) besides: Arc<[Vec<String>]>,
    compiled: OnceLock<Option<Regex>>,
}

impl Predicate {
    /// Compare with a literal: equality (`whole`) or containment, optionally case-folded (`folds`).
    #[must_use]
    pub fn comparison(text: String, whole: bool, folds: bool, literals: Option<Vec<String>>) -> Self {
        if whole {
            Self { test: Test::Equals { text, folds }, literals }
        } else {
            Self { test: Test::Contains { text, folds }, literals }
        }
    }

    /// Search for a regular expression. One literal of each further list must occur too.
    #[must_use]
    pub fn search(pattern: String, literals: Option<Vec<String>>, besides: Vec<Vec<String>>) -> Self {
        let search = Search { pattern, besides: besides.into(), compiled: OnceLock::new() };
        Self { test: Test::Search(search), literals }
    }

    /// Return True if a text matches.
    pub(super) fn holds(&self, text: &str) -> bool {
        match &self.test {
            Test::Equals { text: wanted, folds: false } => wanted == text,
            Test::Equals { text: wanted, folds: true } => wanted.eq_ignore_ascii_case(text),
            Test::Contains { text: wanted, folds: false } => contains(text, wanted),
            Test::Contains { text: wanted, folds: true } => contains(&text.to_ascii_lowercase(), wanted),
            Test::Search(search) => search.finds(text),
        }
    }
}

impl Search {
    fn finds(&self, text: &str) -> bool {
        let compiled = self.compiled.get_or_init(|| {
            let mut builder = RegexBuilder::new(&self.pattern);
            builder.size_limit(MOST_BYTES).dfa_size_limit(MOST_CACHED).nest_limit(MOST_NESTED);
            builder.build().ok()
        });
        // `is_match` stops at the earliest end, which for the empty text may be inside of a character. It
        // then continues behind it and misses earlier matches. `find` does not.
        compiled.as_ref().is_some_and(|regex| regex.find(text).is_some())
    }
}

/// Return True if a text contains another. It is several times faster than the standard library.
pub(super) fn contains(text: &str, wanted: &str) -> bool {
    memmem::find(text.as_bytes(), wanted.as_bytes()).is_some()
}

/// Compile a set of regular expressions over bytes.
///
/// A pattern that matches the empty text may match inside of a character, where it must not. A set over text
/// would stop there and miss the other matches.
pub(super) fn compile_set<'a>(patterns: impl Iterator<Item = &'a str>) -> Option<RegexSet> {
    let mut builder = RegexSetBuilder::new(patterns);
    builder.size_limit(MOST_BYTES).dfa_size_limit(MOST_CACHED).nest_limit(MOST_NESTED);
    builder.build().ok()
}
