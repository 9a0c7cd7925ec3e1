//! What is asked: a name, in lower case and with its labels found, and a type. Lives on the stack; making one allocates
//! nothing.

use crate::name::{MAX_LABEL, MAX_NAME, Name, NameError};

/// The most labels a name has: each takes two bytes at least, and the root one.
const MAX_LABELS: usize = MAX_NAME / 2;

/// A name and a type, ready to be looked up.
#[derive(Clone, Copy)]
pub struct Question {
    /// The name in wire form and lower case.
    lower: [u8; MAX_NAME],
    len: u8,
    /// Where labels begin, without the root's.
    starts: [u8; MAX_LABELS],
    labels: u8,
    /// The type of the records asked for.
    pub rtype: u16,
}

impl Question {
    /// A question.
    pub fn new(name: &Name, rtype: u16) -> Question {
        let mut question = Question { rtype, ..Question::empty() };
        question.fill(name.wire(), 0).expect("a name is one in wire form too");
        question
    }

    /// A question that is to be filled.
    pub(crate) fn empty() -> Question {
        Question { lower: [0; MAX_NAME], len: 0, starts: [0; MAX_LABELS], labels: 0, rtype: 0 }
    }

    /// Reads the name at a place of a message, in which it stands without pointers. Returns the place after it.
    pub(crate) fn fill(&mut self, message: &[u8], from: usize) -> Result<usize, NameError> {
        let mut at = from;
        self.labels = 0;
        loop {
            let size = *message.get(at).ok_or(NameError::Cut)?;
            if size == 0 {
                break;
            }
            if usize::from(size) > MAX_LABEL {
                return Err(if size >= 0xc0 { NameError::Pointer } else { NameError::LongLabel });
            }
            let start = u8::try_from(at - from).map_err(|_| NameError::LongName)?;
            *self.starts.get_mut(usize::from(self.labels)).ok_or(NameError::LongName)? = start;
            self.labels += 1;
            at += 1 + usize::from(size);
        }
        self.len = u8::try_from(at + 1 - from).map_err(|_| NameError::LongName)?;
        let lower = &mut self.lower[..usize::from(self.len)];
        lower.copy_from_slice(&message[from..=at]);
        lower.make_ascii_lowercase();
        Ok(at + 1)
    }

    /// The same name, another type.
    pub fn with_type(self, rtype: u16) -> Question {
        Question { rtype, ..self }
    }

    /// The name in wire form and lower case.
    pub fn lower(&self) -> &[u8] {
        &self.lower[..usize::from(self.len)]
    }

    /// The name in lower case.
    pub fn name(&self) -> Name {
        Name::from_wire(self.lower()).expect("it was read as one")
    }

    /// How many labels the name has, without the root.
    pub fn label_count(&self) -> usize {
        usize::from(self.labels)
    }

    /// A label, the leftmost being number 0.
    pub(crate) fn label(&self, number: usize) -> &[u8] {
        let start = usize::from(self.starts[number]);
        &self.lower[start + 1..=start + usize::from(self.lower[start])]
    }

    /// Some labels beside each other, in wire form without an end.
    pub(crate) fn labels_wire(&self, from: usize, to: usize) -> &[u8] {
        &self.lower[self.start(from)..self.start(to)]
    }

    /// Where a label begins in the wire form; the one after the last is the root's.
    pub(crate) fn start(&self, number: usize) -> usize {
        if number < usize::from(self.labels) { usize::from(self.starts[number]) } else { usize::from(self.len) - 1 }
    }

    /// How many labels stand before a zone, given in lower case, if the name is in it.
    pub(crate) fn labels_before(&self, zone: &[u8], zone_labels: usize) -> Option<usize> {
        let before = usize::from(self.labels).checked_sub(zone_labels)?;
        (&self.lower[self.start(before)..usize::from(self.len)] == zone).then_some(before)
    }
}

impl std::fmt::Debug for Question {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.name(), self.rtype)
    }
}
