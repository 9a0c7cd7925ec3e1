//! Can any bytes break the reading of protobuf messages?
#![no_main]

use fairlead_api::{decode, kinds, proto};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let _ = proto::unwrap(input);
    let Some((first, raw)) = input.split_first() else { return };
    let kind = kinds::KINDS[usize::from(*first) % kinds::KINDS.len()];
    let Ok(value) = proto::read(kind.schema, raw) else { return };
    let Ok(decoded) = decode::decode(kind.schema, value) else { return };
    let written = proto::write(kind.schema, &decoded.value);
    let read = proto::read(kind.schema, &written).expect("what was written can be read");
    let again = decode::decode(kind.schema, read).expect("what was read is well-formed");
    assert_eq!(proto::write(kind.schema, &again.value), written);
});
