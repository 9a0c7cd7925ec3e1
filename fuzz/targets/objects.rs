//! Can any text break the way of an object from JSON to validation?
#![no_main]

use fairlead_api::{Settings, decode, json, kinds, validation};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((first, text)) = input.split_first() else { return };
    let kind = kinds::KINDS[usize::from(*first) % kinds::KINDS.len()];
    let Ok(parsed) = json::parse(text) else { return };
    let Ok(decoded) = decode::decode(kind.schema, parsed.value) else { return };
    let again = decode::decode(kind.schema, decoded.value.clone()).expect("what was decoded is well-formed");
    assert_eq!(again.value, decoded.value);
    assert!(again.unknown.is_empty(), "{:?}", again.unknown);
    let (mut object, settings) = (decoded.value, settings());
    (kind.rules.default)(&mut object, &settings);
    if (kind.rules.admit)(&mut object, &settings).is_err() {
        return;
    }
    (kind.rules.prepare_create)(&mut object, &settings);
    let _ = validation::create(kind, &object, &settings);
    let _ = validation::update(kind, &object, &object, &settings);
    let _ = validation::update_status(kind, &object, &object, &settings);
    let _ = (kind.rules.warnings)(&object, None, &settings);
    let _ = (kind.rules.row)(&object, 0);
});

fn settings() -> Settings {
    let service_ranges = ["10.0.0.0/16", "fd00:10::/108"].map(|range| range.parse().expect("a range")).to_vec();
    Settings { service_ranges, node_ports: 30000..=32767, service_topology: true }
}
