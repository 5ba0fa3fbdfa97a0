//! Where in a file something stands: patterns of dotted paths.

use serde_json::Value;

/// Everything that a pattern leads to, with its path. `*` is any one step, `**` any number of steps.
pub(super) fn find<'a>(file: &'a Value, pattern: &str) -> Vec<(String, &'a Value)> {
    let steps: Vec<&str> = pattern.split('.').collect();
    let mut found = Vec::new();
    walk(String::new(), file, &steps, &mut found);
    found
}

/// What stands at a path, if anything does.
pub(super) fn at<'a>(file: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(file, |value, step| match value {
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        Value::Object(members) => members.get(step),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    })
}

/// The path of what encloses a path.
pub(super) fn outer(path: &str) -> &str {
    path.rsplit_once('.').map_or("", |(outer, _)| outer)
}

pub(super) fn join(path: &str, step: &str) -> String {
    match (path.is_empty(), step.is_empty()) {
        (true, _) => step.to_owned(),
        (false, true) => path.to_owned(),
        (false, false) => format!("{path}.{step}"),
    }
}

fn walk<'a>(path: String, value: &'a Value, steps: &[&str], found: &mut Vec<(String, &'a Value)>) {
    match steps.split_first() {
        None => found.push((path, value)),
        Some((&"*", rest)) => children(value).for_each(|(step, child)| walk(join(&path, &step), child, rest, found)),
        Some((&"**", rest)) => {
            walk(path.clone(), value, rest, found);
            children(value).for_each(|(step, child)| walk(join(&path, &step), child, steps, found));
        }
        Some((step, rest)) => {
            if let Some(child) = value.get(step) {
                walk(join(&path, step), child, rest, found);
            }
        }
    }
}

fn children(value: &Value) -> Box<dyn Iterator<Item = (String, &Value)> + '_> {
    match value {
        Value::Array(items) => Box::new(items.iter().enumerate().map(|(index, item)| (index.to_string(), item))),
        Value::Object(members) => Box::new(members.iter().map(|(name, member)| (name.clone(), member))),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Box::new(std::iter::empty()),
    }
}
