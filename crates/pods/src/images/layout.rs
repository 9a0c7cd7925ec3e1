//! Where an archive has what: an OCI image layout in a directory or a tar file, or what `docker
//! save` writes.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Take};
use std::path::{Component, Path, PathBuf};

use ring::digest::{Context, SHA256};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::tarball::{ImageError, entries};

/// Maximum size of an index, a manifest or a configuration, in bytes. containerd has the same
/// limit.
const DOCUMENT: u64 = 8 << 20;
/// Maximum number of files in an archive of images.
const FILES: usize = 100_000;
/// Maximum number of layers of an image. Docker makes at most 127.
const LAYERS: usize = 512;
/// Maximum number of indices on the way to a manifest.
const INDICES: usize = 4;

/// The files of images.
pub(super) enum Source {
    Folder(PathBuf),
    Archive { file: File, places: BTreeMap<String, FileLocation> },
}

/// Location of a file in an archive.
#[derive(Debug, Clone)]
pub(super) enum FileLocation {
    Bytes {
        offset: u64,
        size: u64,
    },
    /// Another name for a file, as `docker save` writes for a layer that occurs twice.
    Link(String),
}

/// An image as an archive describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Described {
    pub(super) names: Vec<String>,
    /// `sha256:` of the configuration, by which run times know an image.
    pub(super) id: String,
    /// `sha256:` of the manifest, by which registries know it.
    pub(super) digest: Option<String>,
    pub(super) layers: Vec<Layer>,
    pub(super) run: RunConfig,
}

/// A layer: a file of the archive, its digest as it is there, where that is known, and unpacked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layer {
    pub(super) file: String,
    pub(super) digest: Option<String>,
    pub(super) unpacked: String,
}

/// The part of a configuration that says how to run the image (OCI image specification, config.md).
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct RunConfig {
    pub(super) env: Option<Vec<String>>,
    pub(super) entrypoint: Option<Vec<String>>,
    pub(super) cmd: Option<Vec<String>>,
    pub(super) user: Option<String>,
    pub(super) working_dir: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Config {
    #[serde(default)]
    os: String,
    #[serde(default)]
    architecture: String,
    rootfs: RootFs,
    #[serde(default)]
    config: Option<RunConfig>,
}

#[derive(Debug, Deserialize)]
struct RootFs {
    diff_ids: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    #[serde(default)]
    media_type: String,
    digest: String,
    size: u64,
    #[serde(default)]
    platform: Option<Platform>,
    #[serde(default)]
    annotations: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Clone, Deserialize)]
struct Platform {
    #[serde(default)]
    os: String,
    #[serde(default)]
    architecture: String,
}

#[derive(Debug, Deserialize)]
struct Index {
    manifests: Vec<Descriptor>,
}

#[derive(Debug, Deserialize)]
struct Manifest {
    config: Descriptor,
    layers: Vec<Descriptor>,
}

/// An item of `manifest.json` of `docker save`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Saved {
    config: String,
    #[serde(default)]
    repo_tags: Option<Vec<String>>,
    layers: Vec<String>,
}

impl Source {
    /// Opens a directory or a tar file, which is read once.
    pub(super) fn open(path: &Path) -> Result<Source, ImageError> {
        if path.is_dir() {
            let folder = fs::canonicalize(path).map_err(ImageError::io(path.display().to_string()))?;
            return Ok(Source::Folder(folder));
        }
        let file = File::open(path).map_err(ImageError::io(path.display().to_string()))?;
        Source::archive(file)
    }

    /// Reads which files a tar file has.
    pub(super) fn archive(mut file: File) -> Result<Source, ImageError> {
        let mut places = BTreeMap::new();
        file.seek(SeekFrom::Start(0)).map_err(ImageError::io("reading the archive"))?;
        entries(io::BufReader::new(&mut file), |item, _| {
            let name = String::from_utf8(item.path.clone())
                .map_err(|_| ImageError::entry(&item.path, "its name is no text"))?;
            let name =
                normal(&name).ok_or_else(|| ImageError::entry(&item.path, "its name leads out of the archive"))?;
            let place = match item.kind {
                Some(tar::EntryType::Regular) => FileLocation::Bytes { offset: item.offset, size: item.size },
                Some(tar::EntryType::Symlink | tar::EntryType::Link) => {
                    let link = String::from_utf8_lossy(&item.link).into_owned();
                    // The target of a hard link is a name in the archive.
                    let folder = if item.kind == Some(tar::EntryType::Link) { "" } else { folder_of(&name) };
                    let Some(link) = joined(folder, &link) else { return Ok(()) };
                    FileLocation::Link(link)
                }
                _ => return Ok(()),
            };
            places.insert(name, place);
            if places.len() > FILES {
                return Err(ImageError::Invalid(format!("the archive has more than {FILES} files")));
            }
            Ok(())
        })?;
        Ok(Source::Archive { file, places })
    }

    /// Opens a file, and returns its size, too. `None`: there is none of that name.
    pub(super) fn file(&self, name: &str) -> Result<Option<(Take<File>, u64)>, ImageError> {
        let failed = || ImageError::io(format!("reading {name}"));
        match self {
            Source::Folder(folder) => {
                let Some(name) = normal(name) else { return Ok(None) };
                let path = match fs::canonicalize(folder.join(&name)) {
                    Ok(path) => path,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                    Err(error) => return Err(failed()(error)),
                };
                if !path.starts_with(folder) {
                    return Err(ImageError::Invalid(format!("{name}: a link leads out of the directory")));
                }
                let file = File::open(&path).map_err(failed())?;
                let about = file.metadata().map_err(failed())?;
                if !about.is_file() {
                    return Err(ImageError::Invalid(format!("{name} is no file")));
                }
                Ok(Some((file.take(about.len()), about.len())))
            }
            Source::Archive { file, places } => {
                let mut place = places.get(name);
                if let Some(FileLocation::Link(target)) = place {
                    place = places.get(target);
                }
                let Some(FileLocation::Bytes { offset, size }) = place else { return Ok(None) };
                let mut file = file.try_clone().map_err(failed())?;
                file.seek(SeekFrom::Start(*offset)).map_err(failed())?;
                Ok(Some((file.take(*size), *size)))
            }
        }
    }

    /// Reads a small file whole. `None`: there is none of that name.
    fn document(&self, name: &str) -> Result<Option<Vec<u8>>, ImageError> {
        let Some((mut file, size)) = self.file(name)? else { return Ok(None) };
        if size > DOCUMENT {
            return Err(ImageError::Invalid(format!("{name} has more than {DOCUMENT} bytes")));
        }
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(ImageError::io(format!("reading {name}")))?;
        Ok(Some(text))
    }

    /// Reads a blob that a descriptor names, and checks its digest.
    fn blob<T: DeserializeOwned>(&self, descriptor: &Descriptor) -> Result<T, ImageError> {
        let file = blob_file(&descriptor.digest)?;
        let text = self.document(&file)?.ok_or_else(|| missing(&file))?;
        if u64::try_from(text.len()).ok() != Some(descriptor.size) || sha256(&text) != descriptor.digest {
            return Err(ImageError::Invalid(format!("{file} is not what its digest says")));
        }
        parse(&file, &text)
    }

    /// Returns the images for this machine's processor.
    pub(super) fn images(&self) -> Result<Vec<Described>, ImageError> {
        if let Some(text) = self.document("manifest.json")? {
            let saved: Vec<Saved> = parse("manifest.json", &text)?;
            return saved.iter().map(|saved| self.saved(saved)).collect();
        }
        let Some(text) = self.document("index.json")? else {
            let what = "neither index.json (OCI image layout) nor manifest.json (docker save) is there";
            return Err(ImageError::Invalid(format!("this is no image: {what}")));
        };
        let index: Index = parse("index.json", &text)?;
        let mut found = Vec::new();
        for descriptor in &index.manifests {
            self.manifests(descriptor, &names(descriptor), INDICES, &mut found)?;
        }
        if found.is_empty() {
            let platforms: Vec<String> = index.manifests.iter().filter_map(platform).collect();
            let why = format!("it has no image for linux/{}; it has: {}", architecture(), platforms.join(", "));
            return Err(ImageError::Invalid(why));
        }
        Ok(found)
    }

    /// Follows indices to the manifests of this platform.
    fn manifests(
        &self,
        descriptor: &Descriptor,
        names: &[String],
        indices: usize,
        found: &mut Vec<Described>,
    ) -> Result<(), ImageError> {
        let other = |about: &Platform| about.os != "linux" || about.architecture != architecture();
        if descriptor.platform.as_ref().is_some_and(other) {
            return Ok(());
        }
        if descriptor.media_type.contains("index") || descriptor.media_type.contains("manifest.list") {
            let indices = indices.checked_sub(1);
            let indices = indices.ok_or_else(|| ImageError::Invalid("indices are nested too deeply".to_owned()))?;
            let index: Index = self.blob(descriptor)?;
            return index.manifests.iter().try_for_each(|inner| self.manifests(inner, names, indices, found));
        }
        let manifest: Manifest = self.blob(descriptor)?;
        let config: Config = self.blob(&manifest.config)?;
        if descriptor.platform.is_none() && !config.architecture.is_empty() && config.architecture != architecture() {
            return Ok(());
        }
        let layers = manifest.layers.iter().map(|layer| Ok((blob_file(&layer.digest)?, Some(layer.digest.clone()))));
        let layers = layers.collect::<Result<Vec<_>, ImageError>>()?;
        let digest = Some(descriptor.digest.clone());
        found.push(described(names.to_vec(), manifest.config.digest.clone(), digest, layers, config)?);
        Ok(())
    }

    fn saved(&self, saved: &Saved) -> Result<Described, ImageError> {
        let text = self.document(&saved.config)?.ok_or_else(|| missing(&saved.config))?;
        let id = sha256(&text);
        // Both layouts name the file by its digest.
        if named_digest(&saved.config).is_some_and(|named| named != id) {
            return Err(ImageError::Invalid(format!("{} is not what its name says", saved.config)));
        }
        let config: Config = parse(&saved.config, &text)?;
        if !config.architecture.is_empty() && (config.architecture != architecture() || config.os != "linux") {
            let why = format!(
                "the image is for {}/{}, and this machine is linux/{}",
                config.os,
                config.architecture,
                architecture()
            );
            return Err(ImageError::Invalid(why));
        }
        let layers = saved.layers.iter().map(|file| (file.clone(), named_digest(file))).collect();
        described(saved.repo_tags.clone().unwrap_or_default(), id, None, layers, config)
    }
}

fn described(
    names: Vec<String>,
    id: String,
    digest: Option<String>,
    layers: Vec<(String, Option<String>)>,
    config: Config,
) -> Result<Described, ImageError> {
    let unpacked = config.rootfs.diff_ids;
    if layers.len() != unpacked.len() || layers.len() > LAYERS {
        let counts = format!("{} layers, {} digests of them", layers.len(), unpacked.len());
        return Err(ImageError::Invalid(format!("the image is not consistent: {counts}; at most {LAYERS} are read")));
    }
    for digest in &unpacked {
        blob_file(digest)?;
    }
    let layers = layers.into_iter().zip(unpacked);
    let layers = layers.map(|((file, digest), unpacked)| Layer { file, digest, unpacked }).collect();
    Ok(Described { names, id, digest, layers, run: config.config.unwrap_or_default() })
}

/// The names that an index gives an image. `org.opencontainers.image.ref.name` often holds the tag
/// alone.
fn names(descriptor: &Descriptor) -> Vec<String> {
    let annotations = descriptor.annotations.as_ref();
    let named = |key: &str| annotations.and_then(|annotations| annotations.get(key)).cloned();
    let whole = named("org.opencontainers.image.ref.name").filter(|name| name.contains(['/', ':']));
    named("io.containerd.image.name").or(whole).into_iter().collect()
}

fn platform(descriptor: &Descriptor) -> Option<String> {
    descriptor.platform.as_ref().map(|platform| format!("{}/{}", platform.os, platform.architecture))
}

/// This machine's processor in the words of Go, which images use.
pub(super) fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "powerpc64" => "ppc64le",
        other => other,
    }
}

/// Returns the file of a blob: `blobs/sha256/HEX`.
fn blob_file(digest: &str) -> Result<String, ImageError> {
    let hash = digest.strip_prefix("sha256:").filter(|hash| is_hash(hash));
    let hash = hash.ok_or_else(|| ImageError::Invalid(format!("digest {digest:?}: want sha256: and 64 digits")))?;
    Ok(format!("blobs/sha256/{hash}"))
}

/// Returns the digest by which a file is named: `HEX.json`, `blobs/sha256/HEX`.
fn named_digest(file: &str) -> Option<String> {
    let last = file.rsplit('/').next().unwrap_or(file);
    let hash = last.strip_suffix(".json").or_else(|| last.strip_suffix(".tar")).unwrap_or(last);
    is_hash(hash).then(|| format!("sha256:{hash}"))
}

fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

pub(super) fn sha256(bytes: &[u8]) -> String {
    let mut context = Context::new(&SHA256);
    context.update(bytes);
    text_of(context)
}

/// Returns a digest as images write it.
pub(super) fn text_of(context: Context) -> String {
    context.finish().as_ref().iter().fold("sha256:".to_owned(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn parse<T: DeserializeOwned>(file: &str, text: &[u8]) -> Result<T, ImageError> {
    serde_json::from_slice(text).map_err(|error| ImageError::Invalid(format!("{file}: {error}")))
}

fn missing(file: &str) -> ImageError {
    ImageError::Invalid(format!("{file} is missing"))
}

fn folder_of(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// A path in the archive without `.` and empty names. `None`: it is absolute or leads upwards.
fn normal(name: &str) -> Option<String> {
    let mut parts = Vec::new();
    for part in Path::new(name).components() {
        match part {
            Component::Normal(part) => parts.push(part.to_str()?),
            Component::CurDir => {}
            _ => return None,
        }
    }
    Some(parts.join("/"))
}

/// The target of a link in a folder. `None`: it leads out of the archive.
fn joined(folder: &str, link: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in Path::new(link).components() {
        match part {
            Component::Normal(part) => parts.push(part.to_str()?),
            Component::CurDir => {}
            Component::ParentDir => drop(parts.pop()?),
            _ => return None,
        }
    }
    Some(parts.join("/"))
}
