//! Expected values with placeholders such as `${ip4:1}`.

use std::collections::HashMap;

use fairlead_api::value::Value;

/// What placeholders stand for: bound at first sight, equal ever after.
#[derive(Default)]
pub(crate) struct Bindings(HashMap<String, String>);

impl Bindings {
    /// Where `actual` differs from `expected`, if it does.
    pub(crate) fn difference(&mut self, expected: &Value, actual: &Value, path: &str) -> Option<String> {
        match (expected, actual) {
            (Value::Object(e), Value::Object(a)) => {
                let missing = e.keys().find(|key| !a.contains_key(key)).map(|key| format!("{path}.{key} is missing"));
                let extra = || a.keys().find(|key| !e.contains_key(key)).map(|key| format!("{path}.{key} is extra"));
                missing.or_else(extra).or_else(|| {
                    e.iter().find_map(|(key, value)| self.difference(value, &a[key], &format!("{path}.{key}")))
                })
            }
            (Value::Array(e), Value::Array(a)) if e.len() == a.len() => {
                e.iter().zip(a).enumerate().find_map(|(i, (e, a))| self.difference(e, a, &format!("{path}[{i}]")))
            }
            (Value::String(e), Value::String(a)) if self.matches(e, a) => None,
            (Value::String(e), Value::Number(a)) if e.starts_with("${") && self.matches(e, &a.to_string()) => None,
            (e, a) if e == a => None,
            (e, a) => Some(format!("{path}: expected {e}, got {a}")),
        }
    }

    /// Whether a text fits a template.
    pub(crate) fn matches(&mut self, template: &str, text: &str) -> bool {
        let Some(start) = template.find("${") else {
            return template == text;
        };
        let Some(end) = template[start..].find('}').map(|end| start + end) else {
            return template == text;
        };
        let Some(rest) = text.strip_prefix(&template[..start]) else {
            return false;
        };
        let (name, after) = (&template[start + 2..end], &template[end + 1..]);
        let stop = after.find("${").unwrap_or(after.len());
        let length = if after.is_empty() { Some(rest.len()) } else { rest.find(&after[..stop]) };
        length.is_some_and(|length| self.bind(name, &rest[..length]) && self.matches(after, &rest[length..]))
    }

    fn bind(&mut self, name: &str, value: &str) -> bool {
        let bound = ["ip4:", "ip6:", "np:"].iter().any(|class| name.starts_with(class));
        if !bound {
            return !value.is_empty();
        }
        let class = name.split(':').next().unwrap_or_default();
        let fits = match class {
            "ip4" => value.starts_with("10.0."),
            "ip6" => value.starts_with("fd00:10::"),
            _ => value.parse().is_ok_and(|port: u16| (30000..=32767).contains(&port)),
        };
        let known = self.0.entry(name.to_owned()).or_insert_with(|| value.to_owned());
        fits && known == value
    }
}
