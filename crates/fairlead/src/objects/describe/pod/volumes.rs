//! The volumes of a Pod.

use fairlead_api::Look;
use serde_json::Value;

use super::super::Page;

/// Volumes, those of kinds that Fairlead has in kubectl's words.
pub(super) fn describe(page: &mut Page, volumes: &[Value]) {
    if volumes.is_empty() {
        page.field("Volumes", "<none>");
        return;
    }
    page.line(0, "Volumes:");
    for volume in volumes {
        page.line(1, format!("{}:", volume.text("name")));
        for (title, value) in about(volume) {
            page.line(2, format!("{title}:\t{value}"));
        }
    }
}

fn about(volume: &Value) -> Vec<(&'static str, String)> {
    let or = |text: &str, otherwise: &str| if text.is_empty() { otherwise.to_owned() } else { text.to_owned() };
    let kind = volume.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).find(|name| *name != "name");
    let source = volume.at(kind.unwrap_or_default());
    match kind.unwrap_or_default() {
        "emptyDir" => vec![
            ("Type", "EmptyDir (a temporary directory that shares a pod's lifetime)".to_owned()),
            ("Medium", source.text("medium").to_owned()),
            ("SizeLimit", or(source.text("sizeLimit"), "<unset>")),
        ],
        "hostPath" => vec![
            ("Type", "HostPath (bare host directory volume)".to_owned()),
            ("Path", source.text("path").to_owned()),
            ("HostPathType", source.text("type").to_owned()),
        ],
        "configMap" => vec![
            ("Type", "ConfigMap (a volume populated by a ConfigMap)".to_owned()),
            ("Name", source.text("name").to_owned()),
            ("Optional", source.flag("optional").to_string()),
        ],
        "secret" => vec![
            ("Type", "Secret (a volume populated by a Secret)".to_owned()),
            ("SecretName", source.text("secretName").to_owned()),
            ("Optional", source.flag("optional").to_string()),
        ],
        "projected" => {
            vec![("Type", "Projected (a volume that contains injected data from multiple sources)".to_owned())]
        }
        other => vec![("Type", other.to_owned())],
    }
}
