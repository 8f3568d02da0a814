//! How large JSON values are, and how large the state of a run may become.

use crate::border::{MAX_DEPTH, MAX_STRING_BYTES};
use crate::error::{Code, Error, Result};
use crate::json::{Json, View};

pub(crate) const MAX_LOG_LINES: usize = 256;
pub(crate) const MAX_PENDING: usize = 256;
pub(crate) const MAX_STATE_NODES: usize = 10_000;
pub(crate) const MAX_STATE_TEXT: usize = 1 << 20;

const BYTES_PER_STEP: usize = 1024;

/// Values, levels of containers, bytes of text in all (keys among it) and in the longest string.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) nodes: usize,
    pub(crate) deepest: usize,
    pub(crate) text: usize,
    pub(crate) longest: usize,
}

impl Size {
    pub(crate) fn of(root: &impl Json) -> Self {
        Self::within(root, u64::MAX)
    }

    /// The size of a value; of one that takes more steps than that, only that it does.
    pub(crate) fn within(root: &impl Json, most_steps: u64) -> Self {
        let mut size = Self::default();
        match root.view() {
            View::Null | View::Bool(_) | View::Number(_) => size.nodes = 1,
            View::Text(_) | View::Array(_) | View::Object(_) => {
                let mut pending = vec![(root, 1)];
                while let Some((value, depth)) = pending.pop() {
                    size.count(value, depth, &mut pending);
                    if size.steps() > most_steps {
                        break;
                    }
                }
            }
        }
        size
    }

    fn count<'a, T: Json>(&mut self, value: &'a T, depth: usize, pending: &mut Vec<(&'a T, usize)>) {
        self.nodes += 1;
        match value.view() {
            View::Text(text) => {
                self.text += text.len();
                self.longest = self.longest.max(text.len());
            }
            View::Array(items) => {
                self.deepest = self.deepest.max(depth);
                pending.extend(items.iter().map(|item| (item, depth + 1)));
            }
            View::Object(members) => {
                self.deepest = self.deepest.max(depth);
                self.text += members.keys().map(str::len).sum::<usize>();
                pending.extend(members.values().map(|item| (item, depth + 1)));
            }
            View::Null | View::Bool(_) | View::Number(_) => {}
        }
    }

    /// What a call pays to handle values: 1 for each, and 1 for each full 1,024 bytes of their text.
    pub(crate) fn steps(&self) -> u64 {
        (self.nodes + self.text / BYTES_PER_STEP) as u64
    }

    /// Refuse a state, what is pending included, that outgrows its limits.
    pub(crate) fn check(&self) -> Result<()> {
        let problem = if self.longest > MAX_STRING_BYTES {
            format!("a string is longer than {MAX_STRING_BYTES} bytes")
        } else if self.deepest > MAX_DEPTH {
            format!("the state is nested deeper than {MAX_DEPTH} levels")
        } else if self.nodes > MAX_STATE_NODES {
            format!("the state has more than {MAX_STATE_NODES} values")
        } else if self.text > MAX_STATE_TEXT {
            format!("the state holds more than {MAX_STATE_TEXT} bytes of text")
        } else {
            return Ok(());
        };
        Err(Error::new(Code::StateLimit, problem))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::border;
    use crate::value::Value;

    #[test]
    fn everything_is_counted() {
        let value = border::parse("{\"ab\":[1,[\"éé\"]],\"c\":{}}".as_bytes()).unwrap();
        assert_eq!(Size::of(&value), Size { nodes: 6, deepest: 3, text: 7, longest: 4 });
    }

    #[test]
    fn counting_stops_where_the_steps_end() {
        let value: Value = (0..100).map(|_| Value::Null).collect();
        assert_eq!(Size::within(&value, 50).steps(), 51);
        assert_eq!(Size::within(&value, 101), Size::of(&value));
    }
}
