//! How large a JSON value is.

use crate::value::Value;

/// Values, levels of containers, bytes of text in all and in the longest string.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) nodes: usize,
    pub(crate) deepest: usize,
    pub(crate) text: usize,
    pub(crate) longest: usize,
}

impl Size {
    pub(crate) fn of(root: &Value) -> Self {
        let mut size = Self::default();
        let mut pending = vec![(root, 1)];
        while let Some((value, depth)) = pending.pop() {
            size.nodes += 1;
            match value {
                Value::Text(text) => {
                    size.text += text.len();
                    size.longest = size.longest.max(text.len());
                }
                Value::Array(items) => {
                    size.deepest = size.deepest.max(depth);
                    pending.extend(items.iter().map(|item| (item, depth + 1)));
                }
                Value::Object(members) => {
                    size.deepest = size.deepest.max(depth);
                    size.text += members.keys().map(|key| key.len()).sum::<usize>();
                    pending.extend(members.values().map(|item| (item, depth + 1)));
                }
                Value::Null | Value::Bool(_) | Value::Number(_) => {}
            }
        }
        size
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::border;

    #[test]
    fn everything_is_counted() {
        let value = border::parse("{\"ab\":[1,[\"éé\"]],\"c\":{}}".as_bytes()).unwrap();
        assert_eq!(Size::of(&value), Size { nodes: 6, deepest: 3, text: 7, longest: 4 });
    }
}
