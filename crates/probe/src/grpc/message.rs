//! The two messages of the gRPC health protocol, in their frames.
//!
//! ```text
//! frame    compressed (1 byte) | length (4 bytes) | message
//! request  field 1: the service, a text
//! answer   field 1: a Health, a varint
//! ```

use std::fmt;

/// How a service does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Health {
    Unknown,
    Serving,
    NotServing,
    ServiceUnknown,
    Other(u64),
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Health::Unknown => f.write_str("UNKNOWN"),
            Health::Serving => f.write_str("SERVING"),
            Health::NotServing => f.write_str("NOT_SERVING"),
            Health::ServiceUnknown => f.write_str("SERVICE_UNKNOWN"),
            Health::Other(number) => write!(f, "{number}"),
        }
    }
}

/// The question after a service, framed.
pub(super) fn request(service: &str) -> Vec<u8> {
    let mut message = Vec::new();
    if !service.is_empty() {
        message.push(0x0a);
        varint(service.len() as u64, &mut message);
        message.extend_from_slice(service.as_bytes());
    }
    let mut frame = vec![0];
    frame.extend_from_slice(&u32::try_from(message.len()).unwrap_or(u32::MAX).to_be_bytes());
    frame.extend(message);
    frame
}

/// The answer in a frame.
pub(super) fn read(frame: &[u8]) -> Result<Health, &'static str> {
    let Some((&[compressed, a, b, c, d], rest)) = frame.split_first_chunk() else {
        return Err("the answer holds no message");
    };
    if compressed != 0 {
        return Err("the answer is compressed, which was not asked for");
    }
    let length = usize::try_from(u32::from_be_bytes([a, b, c, d])).unwrap_or(usize::MAX);
    let message = rest.get(..length).ok_or("the answer ends in the middle")?;
    serving(message).ok_or("the answer is no HealthCheckResponse")
}

/// The first field; others are passed over.
fn serving(mut message: &[u8]) -> Option<Health> {
    let mut found = Health::Unknown;
    while !message.is_empty() {
        let key = take_varint(&mut message)?;
        match (key >> 3, key & 7) {
            (1, 0) => found = of(take_varint(&mut message)?),
            (_, 0) => drop(take_varint(&mut message)?),
            (_, 1) => message = message.get(8..)?,
            (_, 2) => {
                let length = usize::try_from(take_varint(&mut message)?).ok()?;
                message = message.get(length..)?;
            }
            (_, 5) => message = message.get(4..)?,
            _ => return None,
        }
    }
    Some(found)
}

fn of(number: u64) -> Health {
    match number {
        0 => Health::Unknown,
        1 => Health::Serving,
        2 => Health::NotServing,
        3 => Health::ServiceUnknown,
        other => Health::Other(other),
    }
}

fn varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push((number as u8) | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests;
