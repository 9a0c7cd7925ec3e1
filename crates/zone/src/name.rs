//! Domain names in wire form: what may stand in a message, how it is read and written, and which name is under which.

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

/// The most bytes a name has in a message (RFC 1035, 2.3.4).
pub const MAX_NAME: usize = 255;
/// The most bytes a label has.
pub const MAX_LABEL: usize = 63;
/// More pointers than a name has labels lead nowhere.
const MAX_POINTERS: usize = 127;

/// A domain name, with its case as it was written. Two names that differ by case are the same one.
#[derive(Clone)]
pub struct Name(Box<[u8]>);

/// Why bytes or a text are no name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// A label has more than 63 bytes.
    #[error("a label is longer than 63 bytes")]
    LongLabel,
    /// The name has more than 255 bytes.
    #[error("the name is longer than 255 bytes")]
    LongName,
    /// Two dots beside each other, or one at the beginning.
    #[error("a label is empty")]
    EmptyLabel,
    /// A backslash with nothing after it, or a number over 255.
    #[error("an escape is incomplete")]
    Escape,
    /// The message ends in the midst of it.
    #[error("the message ends within the name")]
    Cut,
    /// A pointer leads forward or to itself, or there are too many.
    #[error("a compression pointer does not lead backward")]
    Pointer,
}

impl Name {
    /// The root.
    pub fn root() -> Name {
        Name(Box::new([0]))
    }

    /// Takes a name in wire form without pointers; it must end where the bytes do.
    pub fn from_wire(wire: &[u8]) -> Result<Name, NameError> {
        let (name, end) = Name::read(wire, 0)?;
        if end == wire.len() { Ok(name) } else { Err(NameError::Cut) }
    }

    /// Reads the name at a place of a message. Returns it without pointers, and the place after it.
    pub fn read(message: &[u8], at: usize) -> Result<(Name, usize), NameError> {
        let mut wire = [0; MAX_NAME];
        let (len, end) = unpack(message, at, &mut wire)?;
        Ok((Name(wire[..len].into()), end))
    }

    /// A name made of labels, the leftmost first.
    pub fn from_labels<'a>(labels: impl IntoIterator<Item = &'a [u8]>) -> Result<Name, NameError> {
        let mut wire = Vec::with_capacity(MAX_NAME);
        for label in labels {
            push_label(&mut wire, label)?;
        }
        finish(wire)
    }

    /// The wire form, the root's empty label included.
    pub fn wire(&self) -> &[u8] {
        &self.0
    }

    /// The labels, the leftmost first, without the root.
    pub fn labels(&self) -> impl Iterator<Item = &[u8]> {
        labels(&self.0)
    }

    /// How many labels it has, without the root.
    pub fn label_count(&self) -> usize {
        self.labels().count()
    }

    /// Whether it is the root.
    pub fn is_root(&self) -> bool {
        self.0.len() == 1
    }

    /// Whether it is that name or one below it.
    pub fn is_under(&self, zone: &Name) -> bool {
        self.prefix_before(zone).is_some()
    }

    /// The wire form of what stands before a zone, without an end: empty for the zone itself.
    pub fn prefix_before(&self, zone: &Name) -> Option<&[u8]> {
        let at = self.0.len().checked_sub(zone.0.len())?;
        let on_label = starts(&self.0).any(|start| start == at);
        (on_label && self.0[at..].eq_ignore_ascii_case(&zone.0)).then(|| &self.0[..at])
    }

    /// The name without its leftmost label; none for the root.
    pub fn parent(&self) -> Option<Name> {
        (!self.is_root()).then(|| Name(self.0[1 + usize::from(self.0[0])..].into()))
    }

    /// This name with another after it: `web` and `default.svc.` make `web.default.svc.`.
    pub fn join(&self, zone: &Name) -> Result<Name, NameError> {
        let mut wire = self.0[..self.0.len() - 1].to_vec();
        wire.extend_from_slice(&zone.0[..zone.0.len() - 1]);
        finish(wire)
    }

    /// The name in lower case.
    pub fn to_lower(&self) -> Name {
        Name(self.0.to_ascii_lowercase().into())
    }
}

/// Reads a name without its pointers into a buffer. Returns its length and the place after it in the message.
fn unpack(message: &[u8], at: usize, out: &mut [u8; MAX_NAME]) -> Result<(usize, usize), NameError> {
    let (mut at, mut from, mut len, mut end, mut pointers) = (at, at, 0, None, 0);
    loop {
        let size = *message.get(at).ok_or(NameError::Cut)?;
        match size {
            0 => {
                *out.get_mut(len).ok_or(NameError::LongName)? = 0;
                return Ok((len + 1, end.unwrap_or(at + 1)));
            }
            1..=63 => {
                let label = message.get(at..=at + usize::from(size)).ok_or(NameError::Cut)?;
                out.get_mut(len..len + label.len()).ok_or(NameError::LongName)?.copy_from_slice(label);
                (at, len) = (at + label.len(), len + label.len());
            }
            192.. => {
                let low = *message.get(at + 1).ok_or(NameError::Cut)?;
                let target = usize::from(u16::from_be_bytes([size & 0x3f, low]));
                pointers += 1;
                if target >= from || pointers > MAX_POINTERS {
                    return Err(NameError::Pointer);
                }
                end.get_or_insert(at + 2);
                (at, from) = (target, target);
            }
            _ => return Err(NameError::LongLabel),
        }
    }
}

/// The labels of a wire form.
pub(crate) fn labels(wire: &[u8]) -> impl Iterator<Item = &[u8]> {
    starts(wire).filter(|start| wire[*start] != 0).map(|start| &wire[start + 1..=start + usize::from(wire[start])])
}

/// Where each label begins, the root's included.
fn starts(wire: &[u8]) -> impl Iterator<Item = usize> {
    let mut next = Some(0);
    std::iter::from_fn(move || {
        let start = next?;
        next = (wire[start] != 0).then(|| start + 1 + usize::from(wire[start]));
        Some(start)
    })
}

/// Appends a label to a wire form without an end.
pub(crate) fn push_label(wire: &mut Vec<u8>, label: &[u8]) -> Result<(), NameError> {
    match u8::try_from(label.len()) {
        Ok(0) => Err(NameError::EmptyLabel),
        Ok(len) if label.len() <= MAX_LABEL => {
            wire.push(len);
            wire.extend_from_slice(label);
            if wire.len() < MAX_NAME { Ok(()) } else { Err(NameError::LongName) }
        }
        _ => Err(NameError::LongLabel),
    }
}

fn finish(mut wire: Vec<u8>) -> Result<Name, NameError> {
    wire.push(0);
    if wire.len() > MAX_NAME { Err(NameError::LongName) } else { Ok(Name(wire.into())) }
}

/// Reads `web.default.svc.cluster.local.`; the last dot may be missing, `\.` and `\065` are escapes, `.` is the root.
impl FromStr for Name {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Name, NameError> {
        if text.is_empty() || text == "." {
            return Ok(Name::root());
        }
        let (mut wire, mut label) = (Vec::with_capacity(text.len() + 2), Vec::new());
        let mut rest = text.as_bytes();
        while let Some((first, after)) = rest.split_first() {
            rest = after;
            match first {
                b'.' => push_label(&mut wire, &std::mem::take(&mut label))?,
                b'\\' => {
                    let (byte, after) = unescape(rest)?;
                    label.push(byte);
                    rest = after;
                }
                byte => label.push(*byte),
            }
        }
        if !label.is_empty() {
            push_label(&mut wire, &label)?;
        }
        finish(wire)
    }
}

fn unescape(rest: &[u8]) -> Result<(u8, &[u8]), NameError> {
    match rest {
        [a @ b'0'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9', after @ ..] => {
            let number = [a, b, c].iter().fold(0u16, |number, digit| number * 10 + u16::from(**digit - b'0'));
            u8::try_from(number).map(|byte| (byte, after)).map_err(|_| NameError::Escape)
        }
        [b'0'..=b'9', ..] | [] => Err(NameError::Escape),
        [byte, after @ ..] => Ok((*byte, after)),
    }
}

/// With a dot at the end, and with escapes for what is no plain character.
impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_root() {
            return f.write_str(".");
        }
        for label in self.labels() {
            for byte in label {
                match byte {
                    b'.' | b'\\' | b'"' | b'(' | b')' | b';' | b'@' | b'$' => write!(f, "\\{}", char::from(*byte))?,
                    b'!'..=b'~' => write!(f, "{}", char::from(*byte))?,
                    other => write!(f, "\\{other:03}")?,
                }
            }
            f.write_str(".")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Name) -> bool {
        // A length is at most 63 and so never a letter: the case of bytes is the case of labels.
        self.0.eq_ignore_ascii_case(&other.0)
    }
}

impl Eq for Name {}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Name) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Name) -> std::cmp::Ordering {
        self.lower().cmp(&other.lower())
    }
}

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.lower().hash(state);
    }
}

impl Name {
    /// The wire form in lower case.
    pub(crate) fn lower(&self) -> Cow<'_, [u8]> {
        if self.0.iter().any(u8::is_ascii_uppercase) {
            return Cow::Owned(self.0.to_ascii_lowercase());
        }
        Cow::Borrowed(&self.0)
    }
}

#[cfg(test)]
mod tests;
