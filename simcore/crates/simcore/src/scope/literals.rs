//! What a literal value must not be: code in disguise, or a danger to clients in other languages.

use crate::logic::is_operator;
use crate::paths::FORBIDDEN_KEYS;
use crate::value::Value;

const TEMPLATES: [&str; 4] = ["{{", "${", "{%", "<%"];

/// Whether a value holds an operation, or a text that looks like a template.
pub(super) fn looks_like_code(value: &Value) -> bool {
    match value {
        Value::Text(text) => TEMPLATES.into_iter().any(|template| text.contains(template)),
        Value::Array(items) => items.iter().any(looks_like_code),
        Value::Object(members) => {
            let is_operation = members.len() == 1 && members.keys().any(|key| is_operator(key));
            is_operation || members.values().any(looks_like_code)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The first key of a value, in the order of keys and depth first, that is dangerous to clients.
pub(super) fn forbidden_key(value: &Value) -> Option<&str> {
    match value {
        Value::Array(items) => items.iter().find_map(forbidden_key),
        Value::Object(members) => members.iter().find_map(|(key, item)| {
            if FORBIDDEN_KEYS.contains(&&**key) { Some(&**key) } else { forbidden_key(item) }
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::border;

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
