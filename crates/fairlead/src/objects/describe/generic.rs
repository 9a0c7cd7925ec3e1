//! Any object: all its fields, with names as people write them.

use serde_json::Value;

use super::Page;

/// What stands at the top already, or is of no interest.
const SKIPPED: [&str; 5] =
    [".metadata.managedFields", ".metadata.name", ".metadata.namespace", ".metadata.labels", ".metadata.annotations"];
/// Names that are written in capitals.
const ACRONYMS: [&str; 4] = ["API", "URL", "UID", "GUID"];
/// Deeper fields are not shown: objects of the API are not that deep.
const DEPTH: usize = 32;

/// An object of whatever kind.
pub(super) fn describe(page: &mut Page, object: &Value) {
    page.head(object);
    fields(page, 0, object, "");
}

fn fields(page: &mut Page, level: usize, object: &Value, path: &str) {
    if level > DEPTH {
        return;
    }
    let mut entries: Vec<(&String, &Value)> = object.as_object().into_iter().flatten().collect();
    entries.sort_by_key(|(name, _)| *name);
    for (name, value) in entries {
        let path = format!("{path}.{name}");
        if SKIPPED.contains(&path.as_str()) {
            continue;
        }
        match value {
            Value::Object(_) => {
                page.line(level, format!("{}:", label(name)));
                fields(page, level + 1, value, &path);
            }
            Value::Array(items) => {
                page.line(level, format!("{}:", label(name)));
                for item in items {
                    match item {
                        Value::Object(_) => fields(page, level + 1, item, &path),
                        other => page.line(level + 1, plain(other)),
                    }
                }
            }
            other => page.line(level, format!("{}:\t{}", label(name), plain(other))),
        }
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// `creationTimestamp` as `Creation Timestamp`. Names with other letters stay as they are.
fn label(name: &str) -> String {
    if name.contains(|c: char| !c.is_alphabetic() && c != '-') {
        return name.to_owned();
    }
    let words = words(name).into_iter().map(|word| {
        let capitals = word.to_uppercase();
        if ACRONYMS.contains(&capitals.as_str()) {
            return capitals;
        }
        let mut letters = word.chars();
        match letters.next() {
            Some(first) if word.to_lowercase() == word => first.to_uppercase().chain(letters).collect(),
            _ => word.clone(),
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// `clusterIPs` as `cluster` and `IPs`: a new word begins with a capital, and several capitals are one word.
fn words(name: &str) -> Vec<String> {
    let letters: Vec<char> = name.chars().collect();
    let mut words: Vec<String> = Vec::new();
    for (at, &c) in letters.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| letters[at]);
        let begins = match before {
            None => true,
            Some(before) => c.is_uppercase() && !before.is_uppercase() || (c == '-') != (before == '-'),
        };
        if begins {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.push(c);
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::label;

    #[test]
    fn fields_are_named_as_people_write_them() {
        let cases = [
            ("creationTimestamp", "Creation Timestamp"),
            ("apiVersion", "API Version"),
            ("uid", "UID"),
            ("kind", "Kind"),
            ("podCIDR", "Pod CIDR"),
            ("app.kubernetes.io/name", "app.kubernetes.io/name"),
            ("clusterIPs", "Cluster IPs"),
        ];
        for (name, expected) in cases {
            assert_eq!(label(name), expected);
        }
    }

    #[test]
    fn deep_objects_end_somewhere() {
        let mut value = serde_json::json!(1);
        for _ in 0..100 {
            value = serde_json::json!({ "a": value });
        }
        let mut page = super::Page::default();
        super::describe(&mut page, &value);
        assert!(page.text.lines().count() < 50, "{}", page.text);
    }
}
