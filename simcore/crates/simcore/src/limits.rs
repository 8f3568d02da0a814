//! Limits on JSON values: the size of a run's state, and the content that no literal may have.

use crate::error::{Code, Error, Result};
use crate::json_node::{Json, View};
use crate::jsonlogic::is_operator;
use crate::paths::FORBIDDEN_KEYS;
use crate::strict_json::{MAX_DEPTH, MAX_STRING_BYTES};

pub(crate) const MAX_LOG_LINES: usize = 256;
pub(crate) const MAX_PENDING: usize = 256;
pub(crate) const MAX_STATE_NODES: usize = 10_000;
pub(crate) const MAX_STATE_TEXT: usize = 1 << 20;

const BYTES_PER_STEP: usize = 1024;

/// Size of a value: nodes, nesting depth, bytes of all text with keys, and bytes of the longest string.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) nodes: usize,
    pub(crate) deepest: usize,
    pub(crate) text: usize,
    pub(crate) longest: usize,
}

impl Size {
    pub(crate) fn measure(root: &impl Json) -> Self {
        Self::measure_within(root, u64::MAX)
    }

    /// Measure a value. Stop when it exceeds `most_steps`; the size is then only a lower bound.
    pub(crate) fn measure_within(root: &impl Json, most_steps: u64) -> Self {
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

    /// Return the steps that a call pays for values: 1 for each, and 1 for each full 1,024 bytes of text.
    pub(crate) fn steps(&self) -> u64 {
        (self.nodes + self.text / BYTES_PER_STEP) as u64
    }

    /// Check the size of a state, with its pending entries, against the limits.
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

const TEMPLATES: [&str; 4] = ["{{", "${", "{%", "<%"];

/// Return True if a value contains an operation or a text that looks like a template.
pub(crate) fn looks_like_code(value: &impl Json) -> bool {
    match value.view() {
        View::Text(text) => TEMPLATES.into_iter().any(|template| text.contains(template)),
        View::Array(items) => items.iter().any(looks_like_code),
        View::Object(members) => {
            let is_operation = members.len() == 1 && members.keys().any(is_operator);
            is_operation || members.values().any(looks_like_code)
        }
        View::Null | View::Bool(_) | View::Number(_) => false,
    }
}

/// Return the first key that is dangerous to clients, depth first in the order of keys.
pub(crate) fn forbidden_key(value: &impl Json) -> Option<&str> {
    match value.view() {
        View::Array(items) => items.iter().find_map(forbidden_key),
        View::Object(members) => members.iter().find_map(|(key, item)| {
            if FORBIDDEN_KEYS.contains(&key) { Some(key) } else { forbidden_key(item) }
        }),
        View::Null | View::Bool(_) | View::Number(_) | View::Text(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strict_json;
    use crate::value::Value;

    fn value(text: &str) -> Value {
        strict_json::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn operations_and_templates_look_like_code_at_any_depth() {
        for text in [r#"{"+":[1,2]}"#, r#"{"a":[{"?:":null}]}"#, r#"["x${y}"]"#, r#""{{a}}""#, r#""<% a %>""#]
        {
            assert!(looks_like_code(&value(text)), "{text}");
        }
        for text in [r#"{"+":1,"-":2}"#, r#"{"plus":[1,2]}"#, r#""{ a } $ % <""#, "[{},null]"] {
            assert!(!looks_like_code(&value(text)), "{text}");
        }
    }

    #[test]
    fn the_first_dangerous_key_is_returned() {
        assert_eq!(forbidden_key(&value(r#"[{"a":{"prototype":1}},{"__proto__":1}]"#)), Some("prototype"));
        assert_eq!(forbidden_key(&value(r#"{"proto":["constructor"]}"#)), None);
    }

    #[test]
    fn size_counts_nodes_depth_and_text() {
        let value = strict_json::parse("{\"ab\":[1,[\"éé\"]],\"c\":{}}".as_bytes()).unwrap();
        assert_eq!(Size::measure(&value), Size { nodes: 6, deepest: 3, text: 7, longest: 4 });
    }

    #[test]
    fn counting_stops_at_the_step_limit() {
        let value: Value = (0..100).map(|_| Value::Null).collect();
        assert_eq!(Size::measure_within(&value, 50).steps(), 51);
        assert_eq!(Size::measure_within(&value, 101), Size::measure(&value));
    }
}
