//! What the kernel keeps for `nft` and does not read itself: comments, and the byte order of keys. Triples of type,
//! length and value, each of one byte but the value.

use super::Set;

const COMMENT: u8 = 0;
const SET_KEY_ORDER: u8 = 0;
const SET_DATA_ORDER: u8 = 1;
const SET_COMMENT: u8 = 7;
/// The kernel takes 256 bytes, of which the triple's own two and the NUL are ours.
const COMMENT_LIMIT: usize = 128;

/// A comment as tables, chains, rules and elements keep it; empty without one.
pub(super) fn comment(comment: Option<&str>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(comment) = comment {
        put_text(&mut bytes, COMMENT, comment);
    }
    bytes
}

/// The comment in user data, if there is one.
pub(super) fn read_comment(bytes: &[u8]) -> Option<String> {
    read(bytes, COMMENT)
}

/// What a set keeps: how to print its numbers, and its comment.
pub(super) fn set(set: &Set) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_order(&mut bytes, SET_KEY_ORDER, &set.key);
    if let super::ValueType::Data(data) = &set.value {
        put_order(&mut bytes, SET_DATA_ORDER, data);
    }
    if let Some(comment) = &set.comment {
        put_text(&mut bytes, SET_COMMENT, comment);
    }
    bytes
}

/// The comment in a set's user data.
pub(super) fn read_set_comment(bytes: &[u8]) -> Option<String> {
    read(bytes, SET_COMMENT)
}

fn put_order(bytes: &mut Vec<u8>, kind: u8, types: &[super::DataType]) {
    const HOST: u32 = 1;
    const NETWORK: u32 = 2;
    let order = if types.len() == 1 && types[0].is_host_order() { HOST } else { NETWORK };
    bytes.extend_from_slice(&[kind, 4]);
    bytes.extend_from_slice(&order.to_ne_bytes());
}

/// A comment that is too long is cut at a character.
fn put_text(bytes: &mut Vec<u8>, kind: u8, text: &str) {
    let mut end = text.len().min(COMMENT_LIMIT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let length = u8::try_from(end + 1).expect("the limit is below 255");
    bytes.extend_from_slice(&[kind, length]);
    bytes.extend_from_slice(&text.as_bytes()[..end]);
    bytes.push(0);
}

fn read(mut bytes: &[u8], wanted: u8) -> Option<String> {
    while let [kind, length, rest @ ..] = bytes {
        let value = rest.get(..usize::from(*length))?;
        if *kind == wanted {
            let end = value.iter().position(|byte| *byte == 0).unwrap_or(value.len());
            return Some(String::from_utf8_lossy(&value[..end]).into_owned());
        }
        bytes = &rest[usize::from(*length)..];
    }
    None
}
