//! What one text is held against.

use std::sync::{Arc, OnceLock};

use memchr::memmem;
use regex::bytes::{RegexSet, RegexSetBuilder};
use regex::{Regex, RegexBuilder};

// What Python takes is smaller by far: these keep the library from refusing what both cores have to take.
const MOST_BYTES: usize = 1 << 28;
const MOST_NESTED: u32 = 1_000;
// A cache of states grows with its use; one that were too small would be cleared again and again.
const MOST_CACHED: usize = 1 << 24;

/// A comparison with one text.
pub struct Predicate {
    pub(super) test: Test,
    /// Folded texts, one of which a text like this contains, itself folded; none where nothing is known.
    pub(super) literals: Option<Vec<String>>,
}

pub(super) enum Test {
    Equals { text: String, folds: bool },
    Contains { text: String, folds: bool },
    Search(Search),
}

/// A regular expression, compiled when it is first needed: of many, most never are.
pub(super) struct Search {
    pub(super) pattern: String,
    /// For each of these, one of the folded texts in it is in a text in which this is found, itself folded.
    pub(super) besides: Arc<[Vec<String>]>,
    compiled: OnceLock<Option<Regex>>,
}

impl Predicate {
    /// A text that another is equal to (`whole`) or contains; folded, if it `folds`.
    #[must_use]
    pub fn comparison(text: String, whole: bool, folds: bool, literals: Option<Vec<String>>) -> Self {
        if whole {
            Self { test: Test::Equals { text, folds }, literals }
        } else {
            Self { test: Test::Contains { text, folds }, literals }
        }
    }

    /// A regular expression, which is found in a text; of further literals one of each list has to be there.
    #[must_use]
    pub fn search(pattern: String, literals: Option<Vec<String>>, besides: Vec<Vec<String>>) -> Self {
        let search = Search { pattern, besides: besides.into(), compiled: OnceLock::new() };
        Self { test: Test::Search(search), literals }
    }

    /// Whether a text is like this.
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
        // `is_match` stops at the earliest end, which for the empty text may lie inside of a character; it then goes
        // on behind that, and misses what begins before. `find` does not.
        compiled.as_ref().is_some_and(|regex| regex.find(text).is_some())
    }
}

/// Whether a text contains another; several times as fast as the standard library's own search.
pub(super) fn contains(text: &str, wanted: &str) -> bool {
    memmem::find(text.as_bytes(), wanted.as_bytes()).is_some()
}

/// Regular expressions that are searched together, in bytes: one that matches the empty text may be found inside
/// of a character, where it does not match. A set over text would stop there, and miss what the others match.
pub(super) fn compile_set<'a>(patterns: impl Iterator<Item = &'a str>) -> Option<RegexSet> {
    let mut builder = RegexSetBuilder::new(patterns);
    builder.size_limit(MOST_BYTES).dfa_size_limit(MOST_CACHED).nest_limit(MOST_NESTED);
    builder.build().ok()
}
