//! ConfigMaps and Secrets in kubectl's layout. What a Secret holds is not shown, only how much.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fairlead_api::Look;
use serde_json::Value;

use super::{Page, pairs};

/// A ConfigMap.
pub(super) fn describe_config_map(page: &mut Page, map: &Value) {
    page.head(map);
    page.line(0, "\nData\n====");
    let mut data = pairs(map.at("data"));
    data.sort();
    for (key, value) in data {
        page.line(0, format!("{key}:\n----\n{value}\n"));
    }
    page.line(0, "\nBinaryData\n====");
    let mut data = pairs(map.at("binaryData"));
    data.sort();
    for (key, value) in data {
        page.line(0, format!("{key}: {} bytes", size(value)));
    }
    page.line(0, "");
}

/// A Secret.
pub(super) fn describe_secret(page: &mut Page, secret: &Value) {
    page.head(secret);
    page.line(0, format!("\nType:\t{}\n\nData\n====", secret.text("type")));
    let mut data = pairs(secret.at("data"));
    data.sort();
    for (key, value) in data {
        page.line(0, format!("{key}:\t{} bytes", size(value)));
    }
}

/// How many bytes a text of base64 stands for.
fn size(text: &str) -> usize {
    STANDARD.decode(text).map_or(0, |bytes| bytes.len())
}
