//! The paths and checks of the scenario.

use serde_json::Value;

/// The value with every ${name} replaced.
pub fn filled(value: &Value, known: &Value) -> Value {
    match value {
        Value::Object(fields) => fields.iter().map(|(name, each)| (name.clone(), filled(each, known))).collect(),
        Value::Array(list) => list.iter().map(|each| filled(each, known)).collect(),
        Value::String(text) => match text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')) {
            Some(name) => known[name].clone(),
            None => value.clone(),
        },
        _ => value.clone(),
    }
}

/// What a path leads to; `*` goes through a list, and what is not there is null.
pub fn at(value: &Value, path: &str) -> Value {
    if path.is_empty() {
        return value.clone();
    }
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    match (value, first, first.parse::<usize>()) {
        (Value::Array(list), "*", _) => list.iter().map(|each| at(each, rest)).collect(),
        (Value::Array(list), _, Ok(index)) => list.get(index).map_or(Value::Null, |each| at(each, rest)),
        _ => at(&value[first], if value[first].is_null() { "" } else { rest }),
    }
}

pub fn holds(check: &Value, found: &Value, known: &Value) -> bool {
    let value = at(found, check["path"].as_str().expect("a path"));
    let list = value.as_array().cloned().unwrap_or_default();
    let numbers = |value: &Value| -> Vec<f64> {
        value.as_array().into_iter().flatten().filter_map(Value::as_f64).collect()
    };
    if let Some(expected) = check.get("equals") {
        same(&value, &filled(expected, known))
    } else if let Some(length) = check.get("length") {
        Some(list.len() as u64) == length.as_u64()
    } else if let Some(part) = check["contains"].as_str() {
        value.as_str().is_some_and(|text| text.contains(part))
    } else if check.get("descends").is_some() {
        !list.is_empty() && numbers(&value).is_sorted_by(|one, other| one >= other)
    } else if let Some(sums) = check.get("sums") {
        let name = |part: &str| sums[part].as_str().expect("a field");
        let adds_up = |each: &Value| {
            let total = numbers(&each[name("of")]).iter().fold(0.0, |total, number| total + number);
            Some(total) == each[name("to")].as_f64()
        };
        !list.is_empty() && list.iter().all(adds_up)
    } else {
        panic!("unknown check {check}")
    }
}

/// Equal as JSON of messages: what is unset is a default, and a long number may be a text.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Array(list), Value::Array(others)) => {
            list.len() == others.len() && list.iter().zip(others).all(|(one, other)| same(one, other))
        }
        (Value::String(text), Value::Number(number)) => *text == number.to_string(),
        (Value::Number(number), Value::Number(expected)) => number.as_f64() == expected.as_f64(),
        _ => one == other || is_default(one) && is_default(other),
    }
}

fn is_default(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(is_set) => !is_set,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(_) => false,
    }
}
