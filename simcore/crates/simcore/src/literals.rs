//! What a literal value must not be: code in disguise, or a danger to clients in other languages.

use crate::json::{Json, View};
use crate::logic::is_operator;
use crate::paths::FORBIDDEN_KEYS;

const TEMPLATES: [&str; 4] = ["{{", "${", "{%", "<%"];

/// Whether a value holds an operation, or a text that looks like a template.
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

/// The first key of a value, in the order of keys and depth first, that is dangerous to clients.
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
    use crate::border;
    use crate::value::Value;

    fn value(text: &str) -> Value {
        border::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn operations_and_templates_look_like_code_wherever_they_stand() {
        for text in [r#"{"+":[1,2]}"#, r#"{"a":[{"?:":null}]}"#, r#"["x${y}"]"#, r#""{{a}}""#, r#""<% a %>""#]
        {
            assert!(looks_like_code(&value(text)), "{text}");
        }
        for text in [r#"{"+":1,"-":2}"#, r#"{"plus":[1,2]}"#, r#""{ a } $ % <""#, "[{},null]"] {
            assert!(!looks_like_code(&value(text)), "{text}");
        }
    }

    #[test]
    fn the_first_dangerous_key_is_named() {
        assert_eq!(forbidden_key(&value(r#"[{"a":{"prototype":1}},{"__proto__":1}]"#)), Some("prototype"));
        assert_eq!(forbidden_key(&value(r#"{"proto":["constructor"]}"#)), None);
    }
}
