//! Fields that are others now: `spec.ports[0].targetPort: 9376 -> http`.

use serde_json::{Map, Value};

/// The longest value that is shown whole, in characters.
const SHOWN: usize = 80;

/// A line a field, without those under the paths in `told`, which others have words for.
pub(super) fn changed(before: &Value, after: &Value, told: &[&str]) -> Vec<String> {
    let mut lines = Vec::new();
    compare(Some(before), Some(after), "", told, &mut lines);
    lines
}

fn compare(before: Option<&Value>, after: Option<&Value>, path: &str, told: &[&str], lines: &mut Vec<String>) {
    if before == after || told.contains(&path) {
        return;
    }
    match (before, after) {
        (Some(Value::Object(before)), Some(Value::Object(after))) => objects(before, after, path, told, lines),
        (Some(Value::Array(before)), Some(Value::Array(after))) if plain(before) && plain(after) => {
            lines.push(format!("{path}: {} -> {}", list(before), list(after)));
        }
        (Some(Value::Array(before)), Some(Value::Array(after))) => {
            for at in 0..before.len().max(after.len()) {
                compare(before.get(at), after.get(at), &format!("{path}[{at}]"), told, lines);
            }
        }
        (before, after) => lines.push(one(path, before, after)),
    }
}

fn objects(
    before: &Map<String, Value>,
    after: &Map<String, Value>,
    path: &str,
    told: &[&str],
    lines: &mut Vec<String>,
) {
    let added = after.keys().filter(|name| !before.contains_key(*name));
    for name in before.keys().chain(added) {
        compare(before.get(name), after.get(name), &below(path, name), told, lines);
    }
}

/// One field that is another, or new, or gone.
pub(super) fn one(path: &str, before: Option<&Value>, after: Option<&Value>) -> String {
    match (before, after) {
        (Some(before), Some(after)) => format!("{path}: {} -> {}", shown(before), shown(after)),
        (None, Some(after)) => format!("{path}: set to {}", shown(after)),
        (Some(before), None) => format!("{path}: removed, was {}", shown(before)),
        (None, None) => path.to_owned(),
    }
}

/// `spec.ports`; names with dots in them as `annotations["a.b/c"]`.
fn below(path: &str, name: &str) -> String {
    let simple = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    match (path.is_empty(), simple) {
        (true, _) => name.to_owned(),
        (false, true) => format!("{path}.{name}"),
        (false, false) => format!("{path}[{name:?}]"),
    }
}

fn plain(list: &[Value]) -> bool {
    list.iter().all(|item| !item.is_object() && !item.is_array())
}

fn list(items: &[Value]) -> String {
    if items.is_empty() {
        return "none".to_owned();
    }
    cut(&items.iter().map(shown).collect::<Vec<_>>().join(", "))
}

/// A value in few characters: texts bare, the rest as JSON.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) if text.is_empty() => "\"\"".to_owned(),
        Value::String(text) => cut(text),
        other => cut(&other.to_string()),
    }
}

fn cut(text: &str) -> String {
    let line = text.replace('\n', "\\n");
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
