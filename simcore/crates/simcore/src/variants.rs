//! Variants of an action: one for each value of the parameters in its paths and messages.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::canonical_json;
use crate::document;
use crate::error::Result;
use crate::json_node::{Json, Members};
use crate::value::{Object, Value};

const MAX_VARIANTS: usize = 64;

/// An action for some values of its parameters.
#[derive(Debug)]
pub(crate) struct Variant {
    /// The value of each parameter in a path or message.
    pub(crate) values: Values,
    /// The action with these values in the place of the parameters.
    pub(crate) action: Value,
}

/// Names of parameters with their values.
pub(crate) type Values = Vec<(Arc<str>, Arc<str>)>;

/// Return the variants of each action. An action without parameters in a path or message has none.
///
/// Before version 1.1 the list is empty.
pub(crate) fn list_variants<T: Json>(spec: Members<'_, T>) -> Result<Vec<Vec<Variant>>> {
    if spec.get("spec_version").map(document::text).transpose()? != Some("1.1") {
        return Ok(Vec::new());
    }
    let actions = document::list_or_empty(spec, "actions")?;
    Ok(actions.iter().map(|action| expand(&action.to_value())).collect())
}

fn expand(action: &Value) -> Vec<Variant> {
    let mut names = BTreeSet::new();
    let noted = map_action(
        action,
        &mut |text| {
            replace_params(text, |name| {
                names.insert(Arc::from(name));
                String::new()
            })
        },
        &mut Value::clone,
    );
    drop(noted);
    let mut note = |message: &Value| {
        names.extend(member(message, "param").and_then(Value::as_text).map(Arc::from));
        Value::Null
    };
    drop(map_action(action, &mut str::to_owned, &mut note));
    if names.is_empty() {
        return Vec::new();
    }
    let mut combinations: Vec<Values> = vec![Vec::new()];
    for name in names {
        let options = options(action, &name);
        if options.is_empty() || combinations.len().saturating_mul(options.len()) > MAX_VARIANTS {
            return Vec::new();
        }
        let extended = combinations.iter().flat_map(|values| {
            options.iter().map(|option| {
                let mut values = values.clone();
                values.push((Arc::clone(&name), Arc::clone(option)));
                values
            })
        });
        combinations = extended.collect();
    }
    let variants =
        combinations.into_iter().map(|values| Variant { action: substitute(action, &values), values });
    variants.collect()
}

/// Return the distinct values of a parameter, or none if it is not a string with `enum`.
fn options(action: &Value, name: &str) -> Vec<Arc<str>> {
    let schema = member(action, "params").and_then(|params| member(params, name));
    let is_text = schema.and_then(|schema| member(schema, "type")).and_then(Value::as_text) == Some("string");
    let given = schema.and_then(|schema| member(schema, "enum")).and_then(Value::as_array);
    let mut options: Vec<Arc<str>> = Vec::new();
    for option in given.filter(|_| is_text).into_iter().flat_map(|given| given.iter()) {
        let Value::Text(text) = option else { return Vec::new() };
        if !options.contains(text) {
            options.push(Arc::clone(text));
        }
    }
    options
}

fn substitute(action: &Value, values: &[(Arc<str>, Arc<str>)]) -> Value {
    let value_of = |name: &str| values.iter().find(|(other, _)| **other == *name).map(|(_, value)| value);
    map_action(
        action,
        &mut |text| {
            replace_params(text, |name| {
                let value = value_of(name).map_or(Value::Null, Value::from);
                format!("[{}]", canonical_json::text(&value).unwrap_or_default())
            })
        },
        &mut |message| {
            let value = member(message, "param").and_then(Value::as_text).and_then(value_of);
            let text = value.and_then(|value| member(member(message, "texts")?, value));
            text.cloned().unwrap_or_else(|| Value::from(""))
        },
    )
}

fn member<'v>(value: &'v Value, key: &str) -> Option<&'v Value> {
    value.as_object()?.get(key)
}

/// Replace each `[params.<name>]` of a path outside of quoted keys.
fn replace_params(text: &str, mut replace: impl FnMut(&str) -> String) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let (taken, replaced) = if let Some(end) = quoted_end(rest) {
            (end, None)
        } else if let Some((name, end)) = param_at(rest) {
            (end, Some(replace(name)))
        } else {
            (next.len_utf8(), None)
        };
        let (before, after) = rest.split_at(taken);
        result.push_str(replaced.as_deref().unwrap_or(before));
        rest = after;
    }
    result
}

/// Return the end of a quoted key at the start of a text.
fn quoted_end(text: &str) -> Option<usize> {
    let mut characters = text.strip_prefix('"')?.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some(at + 2),
            '\\' => drop(characters.next().filter(|(_, escaped)| *escaped != '\n')?),
            _ => {}
        }
    }
    None
}

/// Return the name of a parameter in the place of a key at the start of a text, and the end of the place.
fn param_at(text: &str) -> Option<(&str, usize)> {
    let rest = text.strip_prefix("[params.")?;
    let name = rest.get(..rest.find(']')?)?;
    let mut bytes = name.bytes();
    let begins = bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    let is_name = begins && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_name.then_some((name, text.len() - rest.len() + name.len() + 1))
}

type MapPath<'f> = &'f mut dyn FnMut(&str) -> String;
type MapMessage<'f> = &'f mut dyn FnMut(&Value) -> Value;

/// Return an action with functions applied to its paths, and to its messages that depend on a parameter.
fn map_action(action: &Value, path: MapPath<'_>, message: MapMessage<'_>) -> Value {
    let Some(members) = action.as_object() else { return action.clone() };
    let members = members.iter().map(|(key, value)| {
        let mapped = match &**key {
            "preconditions" | "derives" => map_logic(value, path),
            "effects" => map_effects(value, path, message),
            _ => value.clone(),
        };
        (Arc::clone(key), mapped)
    });
    members.collect::<Object>().into()
}

fn map_logic(logic: &Value, path: MapPath<'_>) -> Value {
    match logic {
        Value::Array(items) => items.iter().map(|item| map_logic(item, path)).collect(),
        Value::Object(members) => {
            let members = members.iter().map(|(key, item)| {
                let mapped = if &**key == "var" { map_variable(item, path) } else { map_logic(item, path) };
                (Arc::clone(key), mapped)
            });
            members.collect::<Object>().into()
        }
        other => other.clone(),
    }
}

fn map_variable(operand: &Value, path: MapPath<'_>) -> Value {
    match operand {
        Value::Text(text) => path(text).into(),
        Value::Array(items) => {
            let mapped = items.iter().enumerate().map(|(index, item)| match item {
                Value::Text(text) if index == 0 => path(text).into(),
                item => map_logic(item, path),
            });
            mapped.collect()
        }
        operand => map_logic(operand, path),
    }
}

fn map_effects(effects: &Value, path: MapPath<'_>, message: MapMessage<'_>) -> Value {
    let Some(effects) = effects.as_array() else { return effects.clone() };
    let mapped = effects.iter().map(|effect| {
        let Some(members) = effect.as_object() else { return effect.clone() };
        let members = members.iter().map(|(key, value)| {
            let mapped = match (&**key, value) {
                ("path", Value::Text(text)) => path(text).into(),
                ("message", Value::Object(_)) => message(value),
                ("effects", value) => map_effects(value, path, message),
                (_, value) => value.clone(),
            };
            (Arc::clone(key), mapped)
        });
        members.collect::<Object>().into()
    });
    mapped.collect()
}
