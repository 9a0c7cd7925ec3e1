//! Can any text break selectors?
#![no_main]

use fairlead_api::kinds;
use fairlead_api::selector::{FieldSelector, LabelSelector};
use libfuzzer_sys::fuzz_target;
use serde_json::json;

fuzz_target!(|input: &[u8]| {
    let Some((first, text)) = input.split_first() else { return };
    let kind = kinds::KINDS[usize::from(*first) % kinds::KINDS.len()];
    let Ok(text) = std::str::from_utf8(text) else { return };
    let object = json!({"metadata": {"name": "web", "labels": {"app": "web", "n": "7"}}});
    for object in [object, json!({})] {
        if let Ok(selector) = LabelSelector::parse(text) {
            let _ = selector.selects(&object);
        }
        if let Ok(selector) = FieldSelector::parse(text, kind) {
            let _ = selector.selects(&object, kind);
        }
    }
});
