//! What the files of a volume hold: keys of ConfigMaps and Secrets, facts of the Pod, tokens of its account.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fairlead_api::{Kind, Look, kinds};
use fairlead_cluster::{Error, Method};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::files::Content;
use crate::env::{self, Given};
use crate::node::Node;

/// The ConfigMap with the certificate authority of the API.
pub(super) const ROOT_CA: &str = "kube-root-ca.crt";
/// Where the end of tokens is remembered, beside a volume.
const TOKENS: &str = "tokens.json";

type Files = BTreeMap<String, Content>;

/// Whether a volume's files come from the API.
pub(super) fn has_files(volume: &Value) -> bool {
    ["configMap", "secret", "projected", "downwardAPI"].into_iter().any(|kind| volume.map(kind).is_some())
}

/// The files of a volume.
pub(super) async fn of(
    node: &Node,
    pod: &Value,
    volume: &Value,
    folder: &Path,
    addresses: &[String],
) -> Result<Files, String> {
    let maker = Maker { node, pod, folder, addresses };
    let mut files = Files::new();
    if volume.map("projected").is_some() {
        let projected = volume.at("projected");
        for source in projected.list("sources") {
            maker.add(&mut files, source, mode(projected)).await?;
        }
        return Ok(files);
    }
    let own = ["configMap", "secret", "downwardAPI"].into_iter().find(|kind| volume.map(kind).is_some());
    let usual = own.map_or(0o644, |kind| mode(volume.at(kind)));
    maker.add(&mut files, volume, usual).await?;
    Ok(files)
}

fn mode(from: &Value) -> u32 {
    from.int_opt("defaultMode").and_then(|mode| u32::try_from(mode).ok()).unwrap_or(0o644)
}

struct Maker<'a> {
    node: &'a Node,
    pod: &'a Value,
    folder: &'a Path,
    addresses: &'a [String],
}

impl Maker<'_> {
    async fn add(&self, files: &mut Files, source: &Value, usual: u32) -> Result<(), String> {
        if source.map("configMap").is_some() {
            return self.keys(files, source.at("configMap"), &kinds::CONFIG_MAP, "name", usual).await;
        }
        if source.map("secret").is_some() {
            // A volume says secretName, a source of a projected one says name.
            let from = source.at("secret");
            let field = if from.text("secretName").is_empty() { "name" } else { "secretName" };
            return self.keys(files, from, &kinds::SECRET, field, usual).await;
        }
        if source.map("downwardAPI").is_some() {
            return self.facts(files, source.at("downwardAPI"), usual);
        }
        if source.map("serviceAccountToken").is_some() {
            let wanted = source.at("serviceAccountToken");
            let bytes = self.token(wanted).await?.into_bytes();
            files.insert(wanted.text("path").to_owned(), Content { bytes, mode: usual });
            return Ok(());
        }
        let kind = source.as_object().and_then(|map| map.keys().next()).map_or("none", String::as_str);
        Err(format!("sources of type {kind} are not supported"))
    }

    async fn keys(&self, files: &mut Files, from: &Value, kind: &Kind, field: &str, usual: u32) -> Result<(), String> {
        let name = from.text(field);
        let object = match self.node.cluster.get(kind, self.pod.at("metadata").text("namespace"), name).await {
            Ok(object) => object,
            Err(Error::NotFound(_))
                if kind.kind == "ConfigMap" && name == ROOT_CA && self.node.settings.ca.is_some() =>
            {
                json!({"data": {"ca.crt": self.node.settings.ca}})
            }
            Err(Error::NotFound(_)) if from.flag("optional") => return Ok(()),
            Err(error) => return Err(error.to_string()),
        };
        let read = |key: &str| value(&object, kind, key);
        if from.list("items").is_empty() {
            let both = ["data", "binaryData"].into_iter().filter_map(|part| object.map(part));
            for key in both.flat_map(|map| map.keys()) {
                let bytes = read(key).unwrap_or_default();
                files.insert(key.clone(), Content { bytes, mode: usual });
            }
        }
        for item in from.list("items") {
            let Some(bytes) = read(item.text("key")) else {
                if from.flag("optional") {
                    continue;
                }
                return Err(format!("references non-existent {} key: {}", kind.kind.to_lowercase(), item.text("key")));
            };
            files.insert(item.text("path").to_owned(), Content { bytes, mode: item_mode(item, usual) });
        }
        Ok(())
    }

    /// Facts of the Pod, as variables have them.
    fn facts(&self, files: &mut Files, from: &Value, usual: u32) -> Result<(), String> {
        for item in from.list("items") {
            let bytes = self.fact(item)?.into_bytes();
            files.insert(item.text("path").to_owned(), Content { bytes, mode: item_mode(item, usual) });
        }
        Ok(())
    }

    fn fact(&self, item: &Value) -> Result<String, String> {
        let of = item.at("resourceFieldRef").text("containerName");
        let container = crate::worker::container_of(self.pod, of);
        let from = json!({"fieldRef": item.at("fieldRef"), "resourceFieldRef": item.at("resourceFieldRef")});
        let asks =
            json!({"name": of, "resources": container.at("resources"), "env": [{"name": "X", "valueFrom": from}]});
        let (none, object) = (BTreeMap::new(), self.node.object.borrow().clone());
        let given = Given {
            pod: self.pod,
            container: &asks,
            services: &[],
            config_maps: &none,
            secrets: &none,
            pod_ips: self.addresses,
            host_ips: &self.node.addresses(),
            allocatable: object.at("status").at("allocatable"),
        };
        let made = env::of(&given).map_err(|mistake| mistake.to_string())?;
        Ok(made.variables.into_iter().next().map(|(_, value)| value).unwrap_or_default())
    }

    /// A token for the Pod's account: the one there is, unless a fifth or less of its time is left.
    async fn token(&self, wanted: &Value) -> Result<String, String> {
        let (path, lives) = (wanted.text("path"), wanted.int_opt("expirationSeconds").unwrap_or(3600));
        let file = self.folder.with_extension(TOKENS);
        let known: Value = fs::read(&file).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
        let old = known.at(path);
        let ends: i64 = old.text("ends").parse::<Timestamp>().map_or(0, Timestamp::as_second);
        if ends - Timestamp::now().as_second() > lives / 5 {
            return Ok(old.text("token").to_owned());
        }
        let answer = self.request(wanted, lives).await.map_err(|error| error.to_string())?;
        let status = answer.at("status");
        let mut known = known;
        known.set(path.to_owned(), json!({"token": status.text("token"), "ends": status.text("expirationTimestamp")}));
        let _ = crate::shim::launch::replace(&file, known.to_string().as_bytes());
        Ok(status.text("token").to_owned())
    }

    async fn request(&self, wanted: &Value, lives: i64) -> Result<Value, Error> {
        let (meta, spec) = (self.pod.at("metadata"), self.pod.at("spec"));
        let account = Some(spec.text("serviceAccountName")).filter(|name| !name.is_empty()).unwrap_or("default");
        let path = format!("/api/v1/namespaces/{}/serviceaccounts/{account}/token", meta.text("namespace"));
        let audiences: Vec<&str> =
            wanted.text_opt("audience").into_iter().filter(|audience| !audience.is_empty()).collect();
        // The API server gives a Node only tokens that end with a Pod of it.
        let pod = json!({"kind": "Pod", "apiVersion": "v1", "name": meta.text("name"), "uid": meta.text("uid")});
        let wanted = json!({"audiences": audiences, "expirationSeconds": lives, "boundObjectRef": pod});
        let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": wanted});
        self.node.cluster.request(Method::POST, &path, Some(&request)).await
    }
}

fn item_mode(item: &Value, usual: u32) -> u32 {
    item.int_opt("mode").and_then(|mode| u32::try_from(mode).ok()).unwrap_or(usual)
}

fn value(object: &Value, kind: &Kind, key: &str) -> Option<Vec<u8>> {
    let text = |part: &str| object.at(part).text_opt(key);
    match kind.kind {
        "Secret" => STANDARD.decode(text("data")?).ok(),
        _ => text("data").map(|text| text.as_bytes().to_vec()).or_else(|| STANDARD.decode(text("binaryData")?).ok()),
    }
}
