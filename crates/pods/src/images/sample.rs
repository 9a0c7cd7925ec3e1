//! Archives for tests: layers, OCI layouts and files of `docker save`, good ones and others.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use tar::{EntryType, Header};

use super::layout::{architecture, sha256};

/// An entry of a tar file, with its names as they are given.
#[derive(Debug, Clone)]
pub(super) struct Sample {
    pub(super) path: Vec<u8>,
    pub(super) kind: EntryType,
    pub(super) link: String,
    pub(super) content: Vec<u8>,
    pub(super) mode: u32,
}

pub(super) fn file(path: &str, content: &str) -> Sample {
    sample(path, EntryType::Regular, "", content.as_bytes(), 0o644)
}

pub(super) fn folder(path: &str) -> Sample {
    sample(path, EntryType::Directory, "", b"", 0o755)
}

pub(super) fn link(path: &str, target: &str) -> Sample {
    sample(path, EntryType::Symlink, target, b"", 0o777)
}

pub(super) fn hard_link(path: &str, target: &str) -> Sample {
    sample(path, EntryType::Link, target, b"", 0o644)
}

pub(super) fn sample(path: &str, kind: EntryType, link: &str, content: &[u8], mode: u32) -> Sample {
    Sample { path: path.as_bytes().to_vec(), kind, link: link.to_owned(), content: content.to_vec(), mode }
}

/// The bytes of a tar file.
pub(super) fn tar(samples: &[Sample]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for sample in samples {
        for (kind, text) in
            [(EntryType::GNULongName, &sample.path), (EntryType::GNULongLink, &sample.link.clone().into_bytes())]
        {
            if text.len() > 100 {
                let mut whole = text.clone();
                whole.push(0);
                append(&mut bytes, b"long", kind, "", &whole, 0o644);
            }
        }
        append(&mut bytes, &sample.path, sample.kind, &sample.link, &sample.content, sample.mode);
    }
    bytes.extend([0; 1024]);
    bytes
}

fn append(bytes: &mut Vec<u8>, path: &[u8], kind: EntryType, link: &str, content: &[u8], mode: u32) {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(content.len() as u64);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(1_600_000_000);
    // Not by the crate's functions, which refuse the names of attackers.
    let old = header.as_old_mut();
    let length = path.len().min(100);
    old.name[..length].copy_from_slice(&path[..length]);
    let length = link.len().min(100);
    old.linkname[..length].copy_from_slice(&link.as_bytes()[..length]);
    header.set_cksum();
    bytes.extend(header.as_bytes());
    bytes.extend(content);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
}

pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("compressed");
    encoder.finish().expect("compressed")
}

/// The files of an archive by name.
pub(super) type Files = BTreeMap<String, Vec<u8>>;

/// An image of layers, as tar files, with its configuration.
pub(super) fn config(layers: &[Vec<u8>], run: &Value) -> Vec<u8> {
    let digests: Vec<String> = layers.iter().map(|layer| sha256(layer)).collect();
    let rootfs = json!({"type": "layers", "diff_ids": digests});
    let config = json!({"os": "linux", "architecture": architecture(), "config": run, "rootfs": rootfs});
    config.to_string().into_bytes()
}

/// An OCI layout with one image, whose layers are compressed.
pub(super) fn oci(name: Option<&str>, layers: &[Vec<u8>], run: &Value) -> Files {
    let mut files = Files::new();
    let mut put = |bytes: Vec<u8>, kind: &str| {
        let digest = sha256(&bytes);
        let descriptor = json!({"mediaType": kind, "digest": digest, "size": bytes.len()});
        files.insert(format!("blobs/{}", digest.replace(':', "/")), bytes);
        descriptor
    };
    let config = put(config(layers, run), "application/vnd.oci.image.config.v1+json");
    let layer = "application/vnd.oci.image.layer.v1.tar+gzip";
    let layers: Vec<Value> = layers.iter().map(|bytes| put(gzip(bytes), layer)).collect();
    let manifest = json!({"schemaVersion": 2, "config": config, "layers": layers});
    let mut manifest = put(manifest.to_string().into_bytes(), "application/vnd.oci.image.manifest.v1+json");
    manifest["platform"] = json!({"os": "linux", "architecture": architecture()});
    if let Some(name) = name {
        manifest["annotations"] = json!({"org.opencontainers.image.ref.name": name});
    }
    let other = json!({"digest": manifest["digest"], "size": 1, "platform": {"os": "plan9", "architecture": "mips"}});
    let index = json!({"schemaVersion": 2, "manifests": [other, manifest]});
    files.insert("index.json".to_owned(), index.to_string().into_bytes());
    files.insert("oci-layout".to_owned(), br#"{"imageLayoutVersion":"1.0.0"}"#.to_vec());
    files
}

/// What `docker save` wrote before version 25.
pub(super) fn docker(names: &[&str], layers: &[Vec<u8>], run: &Value) -> Files {
    let mut files = Files::new();
    let config = config(layers, run);
    let name = format!("{}.json", sha256(&config).trim_start_matches("sha256:"));
    files.insert(name.clone(), config);
    let mut places = Vec::new();
    for (number, layer) in layers.iter().enumerate() {
        let place = format!("layer{number}/layer.tar");
        files.insert(place.clone(), layer.clone());
        places.push(place);
    }
    let manifest = json!([{"Config": name, "RepoTags": names, "Layers": places}]);
    files.insert("manifest.json".to_owned(), manifest.to_string().into_bytes());
    files
}

/// The files as a tar file.
pub(super) fn archive(files: &Files) -> Vec<u8> {
    let samples: Vec<Sample> =
        files.iter().map(|(name, bytes)| sample(name, EntryType::Regular, "", bytes, 0o644)).collect();
    tar(&samples)
}

/// Writes the files into a directory.
pub(super) fn write(folder: &Path, files: &Files) {
    for (name, bytes) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        fs::write(path, bytes).expect("written");
    }
}
