//! What a name, a label or a port name may look like. Each function returns the reasons why a text is not one, in the
//! words of the Kubernetes API; none means it is.

/// Reasons against a text.
pub type Reasons = Vec<String>;

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const LABEL_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const KEY: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// An RFC 1123 label: `web-1`.
pub fn label(text: &str) -> Reasons {
    let mut reasons = over(63, text, "characters");
    if !is_label(text) {
        reasons.push(if is_subdomain(text) { "must not contain dots".to_owned() } else { LABEL.to_owned() });
    }
    reasons
}

/// An RFC 1035 label: like [`label`], but beginning with a letter.
pub fn label_1035(text: &str) -> Reasons {
    let mut reasons = over(63, text, "characters");
    if !(is_label(text) && text.starts_with(|c: char| c.is_ascii_lowercase())) {
        reasons.push(LABEL_1035.to_owned());
    }
    reasons
}

/// An RFC 1123 subdomain: `db.example.com`.
pub fn subdomain(text: &str) -> Reasons {
    let mut reasons = over(253, text, "characters");
    if !is_subdomain(text) {
        reasons.push(SUBDOMAIN.to_owned());
    }
    reasons
}

/// The key of a label or annotation: `app` or `example.com/app`.
pub fn label_key(text: &str) -> Reasons {
    let parts: Vec<&str> = text.splitn(3, '/').collect();
    let mut reasons = Reasons::new();
    let name = match parts[..] {
        [name] => name,
        [prefix, name] => {
            if prefix.is_empty() {
                reasons.push("prefix part must be non-empty".to_owned());
            } else {
                reasons.extend(over(253, prefix, "bytes").into_iter().map(|r| format!("prefix part {r}")));
                if !is_subdomain(prefix) {
                    reasons.push(format!("prefix part {SUBDOMAIN}"));
                }
            }
            name
        }
        _ => {
            return vec![format!(
                "a valid label key {KEY} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        reasons.push("name part must be non-empty".to_owned());
    }
    reasons.extend(over(63, name, "bytes").into_iter().map(|r| format!("name part {r}")));
    if !is_key(name) {
        reasons.push(format!("name part {KEY}"));
    }
    reasons
}

/// The value of a label.
pub fn label_value(text: &str) -> Reasons {
    let mut reasons = over(63, text, "bytes");
    if !(text.is_empty() || is_key(text)) {
        reasons.push(LABEL_VALUE.to_owned());
    }
    reasons
}

/// The name of a container port: `http`.
pub fn port_name(text: &str) -> Reasons {
    let mut reasons = over(15, text, "characters");
    let mut unless = |fine: bool, reason: &str| {
        if !fine {
            reasons.push(reason.to_owned());
        }
    };
    let known = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    unless(
        !text.is_empty() && text.chars().all(known),
        "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
    );
    unless(text.contains(|c: char| c.is_ascii_lowercase()), "must contain at least one letter (a-z)");
    unless(!text.contains("--"), "must not contain consecutive hyphens");
    unless(!(text.starts_with('-') || text.ends_with('-')), "must not begin or end with a hyphen");
    reasons
}

/// A port number.
pub fn port_number(port: i64) -> Reasons {
    in_range(port, 1, 65535)
}

/// A number within bounds.
pub fn in_range(number: i64, low: i64, high: i64) -> Reasons {
    if (low..=high).contains(&number) {
        return Reasons::new();
    }
    vec![format!("must be between {low} and {high}, inclusive")]
}

/// The key of a ConfigMap or Secret.
pub fn config_key(text: &str) -> Reasons {
    let mut reasons = over(253, text, "characters");
    if text.is_empty() || !text.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c)) {
        reasons.push("a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')".to_owned());
    }
    match text {
        "." => reasons.push("must not be '.'".to_owned()),
        ".." => reasons.push("must not be '..'".to_owned()),
        _ if text.starts_with("..") => reasons.push("must not start with '..'".to_owned()),
        _ => {}
    }
    reasons
}

/// One segment of a URL path: names of RBAC objects.
pub fn path_segment(text: &str) -> Reasons {
    let mut reasons = Reasons::new();
    if text == "." || text == ".." {
        reasons.push(format!("may not be '{text}'"));
    }
    for forbidden in ["/", "%"] {
        if text.contains(forbidden) {
            reasons.push(format!("may not contain '{forbidden}'"));
        }
    }
    reasons
}

/// Whether this is an RFC 1123 label of any length.
pub fn is_label(text: &str) -> bool {
    let inner = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
    let bytes = text.as_bytes();
    matches!((bytes.first(), bytes.last()), (Some(first), Some(last)) if *first != b'-' && *last != b'-')
        && bytes.iter().all(|c| inner(*c))
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

fn is_key(text: &str) -> bool {
    let bytes = text.as_bytes();
    let inner = |c: u8| c.is_ascii_alphanumeric() || b"-_.".contains(&c);
    matches!((bytes.first(), bytes.last()), (Some(a), Some(z)) if a.is_ascii_alphanumeric() && z.is_ascii_alphanumeric())
        && bytes.iter().all(|c| inner(*c))
}

fn over(max: usize, text: &str, unit: &str) -> Reasons {
    if text.len() > max { vec![format!("must be no more than {max} {unit}")] } else { Reasons::new() }
}
