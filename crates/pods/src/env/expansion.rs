//! `$(VAR)` in a value, replaced; `$$` is a dollar sign; what is unknown or unfinished stays as it is written.

use super::MAX_LENGTH;

/// The text with variables replaced. `None`: it has become longer than the kernel hands to a program, which a few variables
/// that double each other easily do.
pub fn expand<'a>(text: &str, value: impl Fn(&str) -> Option<&'a str>) -> Option<String> {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    // Looking for a closing bracket behind the last one again and again would take time quadratic in the text.
    let mut closing = text.bytes().filter(|byte| *byte == b')').count();
    while let Some(at) = rest.find('$') {
        closing -= rest[..at].bytes().filter(|byte| *byte == b')').count();
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let reference = after.strip_prefix('(').filter(|_| closing > 0).and_then(|inside| inside.split_once(')'));
        rest = if let Some(escaped) = after.strip_prefix('$') {
            out.push('$');
            escaped
        } else if let Some((name, behind)) = reference {
            closing -= 1;
            match value(name) {
                Some(value) => out.push_str(value),
                None => out.push_str(&rest[at..at + name.len() + 3]),
            }
            behind
        } else {
            out.push('$');
            after
        };
        if out.len() > MAX_LENGTH {
            return None;
        }
    }
    out.push_str(rest);
    (out.len() <= MAX_LENGTH).then_some(out)
}
