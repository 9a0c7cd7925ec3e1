//! The images that were loaded: a directory for each, named by its digest, with its files (`root`)
//! and how it is run (`image.json`). Images are never changed, only made whole and renamed into
//! place, or removed.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use flate2::read::MultiGzDecoder;
use jiff::Timestamp;
use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};

use super::layer::{Limits, Unpacking};
use super::layout::{Described, Layer, Source, text_of};
use super::tarball::ImageError;
use super::{Image, Reference};
use crate::node::Node;
use crate::record::Record;
use crate::shim::launch::{self, LAUNCH, Launch, State};
use crate::status::described;

#[cfg(test)]
mod tests;

/// The file that says how an image is run.
const ABOUT: &str = "image.json";
/// The directory with its files.
const ROOT: &str = "root";
/// The directory in which images are made before they get their name.
const STAGING: &str = ".staging";
/// The file that is locked while images are changed.
const LOCK: &str = ".lock";
/// Time in which a container that is being started has a state.
const START: Duration = Duration::from_secs(2);
const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// The loaded images of a Node.
#[derive(Debug, Clone)]
pub struct Store {
    folder: PathBuf,
    data: PathBuf,
}

/// An image that was loaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loaded {
    /// `sha256:` of its configuration.
    pub id: String,
    /// `sha256:` of its manifest, where that is known.
    pub digest: Option<String>,
    /// Whole names, such as `docker.io/library/nginx:1.29`.
    pub names: Vec<String>,
    /// Bytes of its files.
    pub size: u64,
    /// When it was loaded, RFC 3339.
    pub loaded: String,
    entrypoint: Vec<String>,
    command: Vec<String>,
    env: Vec<(String, String)>,
    user: Option<String>,
    /// The administrator has said the user.
    chosen_user: bool,
    working_dir: Option<String>,
}

/// Options of a load.
#[derive(Debug, Clone, Default)]
pub struct Load {
    /// The name of the image, in place of those in the archive.
    pub name: Option<String>,
    /// The user of the image, in place of the one in the archive. May be root.
    pub user: Option<String>,
    /// Limits of the unpacked files.
    pub limits: Limits,
}

impl Store {
    /// Names the images of a Node whose Pods' state is in a directory.
    pub fn new(data: &Path) -> Store {
        Store { folder: data.join("images"), data: data.to_owned() }
    }

    /// Returns all images, ordered by name.
    pub fn list(&self) -> Vec<Loaded> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut all: Vec<Loaded> = entries.filter_map(|entry| about(&entry.path())).collect();
        all.sort_by(|one, other| (&one.names, &one.id).cmp(&(&other.names, &other.id)));
        all
    }

    /// Returns the image of a name. A digest in the name is that of the manifest or of the
    /// configuration.
    pub(crate) fn find(&self, name: &Reference) -> Option<Image> {
        let tagged = Reference { digest: String::new(), ..name.clone() }.to_string();
        let fits = |image: &Loaded| match name.digest.as_str() {
            "" => image.names.contains(&tagged),
            digest => image.id == digest || image.digest.as_deref() == Some(digest),
        };
        self.list().into_iter().find(fits).map(|image| Image {
            root: Some(self.place(&image.id).join(ROOT)),
            id: image.id,
            entrypoint: image.entrypoint,
            command: image.command,
            env: image.env,
            user: image.user,
            chosen_user: image.chosen_user,
            working_dir: image.working_dir,
        })
    }

    /// Unpacks the images of an OCI layout (a directory or a tar file) or of a file of `docker
    /// save`, and returns them. A mistake leaves nothing behind.
    pub fn load(&self, from: &Path, load: &Load) -> Result<Vec<Loaded>, ImageError> {
        let name = load.name.as_deref().map(whole_name).transpose()?;
        let _lock = self.lock()?;
        let staging = self.folder.join(STAGING);
        remove(&staging).map_err(ImageError::io("removing what an earlier load left"))?;
        make_private(&staging).map_err(ImageError::io(format!("making {}", staging.display())))?;
        let loaded = self.load_into(&staging, from, name, load);
        let cleaned = remove(&staging).map_err(ImageError::io("removing what was unpacked"));
        let loaded = loaded?;
        cleaned?;
        Ok(loaded)
    }

    fn load_into(
        &self,
        staging: &Path,
        from: &Path,
        name: Option<String>,
        load: &Load,
    ) -> Result<Vec<Loaded>, ImageError> {
        let source = open(from, staging, load.limits.bytes)?;
        let found = source.images()?;
        if name.is_some() && found.len() != 1 {
            return Err(ImageError::Invalid(format!("it has {} images, which cannot have the same name", found.len())));
        }
        let mut made = Vec::new();
        for (number, image) in found.iter().enumerate() {
            let names: Result<Vec<String>, ImageError> = match &name {
                Some(name) => Ok(vec![name.clone()]),
                None => image.names.iter().map(|name| whole_name(name)).collect(),
            };
            let names = names?;
            if names.is_empty() {
                let why = "the archive does not name the image; give it a name (--name)";
                return Err(ImageError::Invalid(why.to_owned()));
            }
            let folder = staging.join(number.to_string());
            make_private(&folder).map_err(ImageError::io(format!("making {}", folder.display())))?;
            let size = unpack(&source, image, &folder.join(ROOT), load.limits)?;
            let loaded = Loaded::new(image, names, size, load.user.clone());
            write(&folder, &loaded).map_err(ImageError::io(format!("writing {ABOUT}")))?;
            made.push((folder, loaded));
        }
        for (folder, loaded) in &made {
            self.install(folder, loaded).map_err(ImageError::io(format!("keeping image {}", loaded.id)))?;
        }
        Ok(made.into_iter().map(|(_, loaded)| loaded).collect())
    }

    /// Moves an image to its place, and takes its names from others.
    fn install(&self, folder: &Path, loaded: &Loaded) -> io::Result<()> {
        let place = self.place(&loaded.id);
        match about(&place) {
            // The same files. Containers may be using them.
            Some(old) => {
                let mut names = old.names;
                names.extend(loaded.names.iter().cloned());
                names.sort();
                names.dedup();
                write(&place, &Loaded { names, ..loaded.clone() })?;
            }
            None => {
                remove(&place)?;
                fs::rename(folder, &place)?;
            }
        }
        for mut other in self.list().into_iter().filter(|other| other.id != loaded.id) {
            let count = other.names.len();
            other.names.retain(|name| !loaded.names.contains(name));
            if other.names.len() != count {
                write(&self.place(&other.id), &other)?;
            }
        }
        Ok(())
    }

    /// Removes an image by a name, its digest or the beginning of that. With several names only the
    /// one goes. Returns what is gone.
    pub fn remove(&self, what: &str) -> Result<String, ImageError> {
        let _lock = self.lock()?;
        let named = whole_name(what).ok();
        let all = self.list();
        if let Some(image) = all.iter().find(|image| named.as_ref().is_some_and(|name| image.names.contains(name))) {
            let name = named.unwrap_or_default();
            if image.names.len() > 1 {
                let names = image.names.iter().filter(|other| **other != name).cloned().collect();
                let rest = Loaded { names, ..image.clone() };
                write(&self.place(&image.id), &rest).map_err(ImageError::io(format!("writing {ABOUT}")))?;
                return Ok(name);
            }
            return self.remove_files(image).map(|()| name);
        }
        let hash = what.strip_prefix("sha256:").unwrap_or(what);
        let fits = |image: &&Loaded| {
            hash.len() >= 6 && image.id.strip_prefix("sha256:").is_some_and(|id| id.starts_with(hash))
        };
        let found: Vec<&Loaded> = all.iter().filter(fits).collect();
        match found.as_slice() {
            [image] => self.remove_files(image).map(|()| image.id.clone()),
            [] => Err(ImageError::Invalid(format!("no image is called {what:?}; \"fairlead image ls\" shows all"))),
            _ => Err(ImageError::Invalid(format!("the digests of {} images begin with {hash}", found.len()))),
        }
    }

    fn remove_files(&self, image: &Loaded) -> Result<(), ImageError> {
        let place = self.place(&image.id);
        let end = Instant::now() + START;
        while let Some((pod, known)) = self.user_of(&place.join(ROOT)) {
            // A container without a state is being started, or the state of its Pod is just being
            // removed.
            if !known && Instant::now() < end {
                std::thread::sleep(Duration::from_millis(20));
                continue;
            }
            return Err(ImageError::Invalid(format!("image {} is in use by Pod {pod}", image.id)));
        }
        // What is half removed is no image.
        let failed = || ImageError::io(format!("removing image {}", image.id));
        fs::remove_file(place.join(ABOUT)).map_err(failed())?;
        remove(&place).map_err(failed())
    }

    /// Returns a Pod of which a container has these files and has not ended. False: it is not known
    /// whether it has begun.
    fn user_of(&self, root: &Path) -> Option<(String, bool)> {
        let below = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        for pod in below(&Node::states(&self.data)) {
            for run in below(&pod.join("runs")).flat_map(|container| below(&container).collect::<Vec<_>>()) {
                let launch =
                    fs::read(run.join(LAUNCH)).ok().and_then(|text| serde_json::from_slice::<Launch>(&text).ok());
                if launch.is_none_or(|launch| launch.root.as_deref() != Some(root)) {
                    continue;
                }
                let state = State::read(&run);
                let ended =
                    |state: &State| state.ended.is_some() || state.boot != launch::boot() || !state.init.lives();
                if !state.as_ref().is_some_and(ended) {
                    let name = Record::read(&pod).map(|record| described(&record.pod));
                    return Some((name.unwrap_or_else(|| pod.display().to_string()), state.is_some()));
                }
            }
        }
        None
    }

    fn place(&self, id: &str) -> PathBuf {
        self.folder.join(id.replace(':', "-"))
    }

    /// Keeps others from changing images.
    fn lock(&self) -> Result<File, ImageError> {
        let locked = || -> io::Result<File> {
            make_private(&self.folder)?;
            let file = File::options().create(true).truncate(false).write(true).open(self.folder.join(LOCK))?;
            file.lock()?;
            Ok(file)
        };
        locked().map_err(ImageError::io(format!("opening {}", self.folder.display())))
    }
}

impl Loaded {
    fn new(image: &Described, names: Vec<String>, size: u64, user: Option<String>) -> Loaded {
        let run = image.run.clone();
        let env = run.env.unwrap_or_default();
        let env = env.iter().filter_map(|pair| pair.split_once('='));
        Loaded {
            id: image.id.clone(),
            digest: image.digest.clone(),
            names,
            size,
            loaded: format!("{:.0}", Timestamp::now()),
            entrypoint: run.entrypoint.unwrap_or_default(),
            command: run.cmd.unwrap_or_default(),
            env: env.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            chosen_user: user.is_some(),
            user: user.or(run.user).filter(|user| !user.is_empty()),
            working_dir: run.working_dir.filter(|folder| !folder.is_empty()),
        }
    }
}

/// Reads what is known of an image.
fn about(folder: &Path) -> Option<Loaded> {
    serde_json::from_slice(&fs::read(folder.join(ABOUT)).ok()?).ok()
}

fn write(folder: &Path, loaded: &Loaded) -> io::Result<()> {
    launch::replace(&folder.join(ABOUT), &serde_json::to_vec(loaded)?)
}

fn whole_name(name: &str) -> Result<String, ImageError> {
    let reference: Reference = name.parse().map_err(ImageError::Invalid)?;
    Ok(Reference { digest: String::new(), ..reference }.to_string())
}

/// Makes a directory that only its owner may look into: images may have files with setuid bits.
fn make_private(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// Opens an archive. One that is compressed as a whole is unpacked first.
fn open(from: &Path, staging: &Path, most: u64) -> Result<Source, ImageError> {
    if from.is_dir() {
        return Source::open(from);
    }
    let failed = || ImageError::io(from.display().to_string());
    let mut file = File::open(from).map_err(failed())?;
    let magic = magic(&mut file).map_err(failed())?;
    file.seek(SeekFrom::Start(0)).map_err(failed())?;
    if magic.starts_with(ZSTD) {
        return Err(ImageError::Invalid(
            "it is compressed with zstd, which is not supported: decompress it first".to_owned(),
        ));
    }
    if !magic.starts_with(GZIP) {
        return Source::archive(file);
    }
    let path = staging.join("archive.tar");
    let mut plain = File::options().read(true).write(true).create_new(true).open(&path).map_err(failed())?;
    let copied = io::copy(&mut MultiGzDecoder::new(file).take(most.saturating_add(1)), &mut plain).map_err(failed())?;
    if copied > most {
        return Err(ImageError::Invalid(format!("more than {most} bytes unpacked")));
    }
    Source::archive(plain)
}

/// Unpacks the layers of an image, and returns how many bytes its files have.
fn unpack(source: &Source, image: &Described, root: &Path, limits: Limits) -> Result<u64, ImageError> {
    let made = fs::create_dir(root).and_then(|()| fs::set_permissions(root, fs::Permissions::from_mode(0o755)));
    made.map_err(ImageError::io(format!("making {}", root.display())))?;
    // Our own entry in /proc belongs to whom we run as.
    let owners = fs::metadata("/proc/self").is_ok_and(|entry| entry.uid() == 0);
    let mut unpacking = Unpacking::new(root.to_owned(), limits, owners);
    for layer in &image.layers {
        unpack_layer(source, layer, &mut unpacking)?;
    }
    Ok(unpacking.written)
}

fn unpack_layer(source: &Source, layer: &Layer, unpacking: &mut Unpacking) -> Result<(), ImageError> {
    let Layer { file, digest, unpacked } = layer;
    let open = || source.file(file)?.ok_or_else(|| ImageError::Invalid(format!("{file} is missing")));
    if let Some(digest) = digest {
        let mut whole = Hashing::new(open()?.0);
        io::copy(&mut whole, &mut io::sink()).map_err(ImageError::io(format!("reading {file}")))?;
        if whole.digest() != *digest {
            return Err(ImageError::Invalid(format!("layer {file} is not what its digest says")));
        }
    }
    let magic = magic(&mut open()?.0).map_err(ImageError::io(format!("reading {file}")))?;
    if magic.starts_with(ZSTD) {
        let why = format!("layer {file} is compressed with zstd, which is not supported: save the image with gzip");
        return Err(ImageError::Invalid(why));
    }
    let content = open()?.0;
    let content: Box<dyn Read> =
        if magic.starts_with(GZIP) { Box::new(MultiGzDecoder::new(content)) } else { Box::new(content) };
    let mut content = Hashing::new(content);
    unpacking.layer(&mut content)?;
    if content.digest() != *unpacked {
        return Err(ImageError::Invalid(format!("layer {file} is not what the image's configuration says (diff_ids)")));
    }
    Ok(())
}

/// The first bytes of a file.
fn magic(file: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut magic = Vec::new();
    file.take(4).read_to_end(&mut magic)?;
    Ok(magic)
}

/// A reader that knows the digest of what was read.
struct Hashing<R> {
    from: R,
    context: Context,
}

impl<R: Read> Hashing<R> {
    fn new(from: R) -> Hashing<R> {
        Hashing { from, context: Context::new(&SHA256) }
    }

    fn digest(self) -> String {
        text_of(self.context)
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = self.from.read(into)?;
        self.context.update(&into[..length]);
        Ok(length)
    }
}
