//! What follows the question mark of a URL, decoded. Pure.

/// Names and values, in order.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    pub(super) fn parse(text: &str) -> Query {
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        let decode = |text: &str| decode(text, true);
        let pair = |pair: &str| match pair.split_once('=') {
            Some((name, value)) => (decode(name), decode(value)),
            None => (decode(pair), String::new()),
        };
        Query(pairs.map(pair).collect())
    }

    /// The first value of a name.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// All values of a name.
    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Whether a switch is on.
    pub(super) fn flag(&self, name: &str) -> bool {
        matches!(self.get(name), Some("1" | "true"))
    }
}

/// A part of a path.
pub(super) fn decode_path(text: &str) -> String {
    decode(text, false)
}

/// Turns `%41` into `A`, and in queries `+` into a space. What is not valid stays as it is.
fn decode(text: &str, spaces: bool) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let hex = bytes.get(at + 1..at + 3).filter(|_| *byte == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(decoded) => {
                out.push(decoded);
                at += 3;
            }
            None => {
                out.push(if spaces && *byte == b'+' { b' ' } else { *byte });
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_decoded_and_keep_their_order() {
        let query = Query::parse("command=sh&command=-c&command=echo+%22a%26b%22%2B&tty=1&follow&bad=%zz");
        assert_eq!(query.all("command").collect::<Vec<_>>(), ["sh", "-c", "echo \"a&b\"+"]);
        assert!(query.flag("tty") && !query.flag("follow") && !query.flag("none"));
        assert_eq!((query.get("bad"), query.get("follow")), (Some("%zz"), Some("")));
    }
}
