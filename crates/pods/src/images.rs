//! What the image of a container is here: a name is mapped to a directory with its files, and to
//! the command, the variables, the user and the working directory that go with them. Nothing is
//! pulled from registries.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use fairlead_api::Look;
use fairlead_api::kinds::pod::privileges::HOST_IMAGE;
use fairlead_kernel::mount;
use serde_json::Value;

pub use layer::Limits;
pub use reference::{Pattern, Reference};
pub use store::{Load, Loaded, Store};
pub use tarball::ImageError;
pub(crate) use user::{Accounts, ImageUser};

mod layer;
mod layout;
mod reference;
#[cfg(test)]
mod sample;
mod store;
mod tarball;
#[cfg(test)]
mod tests;
mod user;

/// Maximum size of an image's list of users or groups, in bytes.
const ACCOUNTS_SIZE: u64 = 1 << 20;

/// An entry of `images` of the config file: what runs where a container has an image of such a
/// name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// The names of images.
    pub pattern: Pattern,
    /// The unpacked file system. `None`: the machine's files.
    pub root: Option<PathBuf>,
    /// Program and first arguments; a container's `command` replaces it.
    pub entrypoint: Vec<String>,
    /// Further arguments; a container's `args` replace them.
    pub command: Vec<String>,
    /// Variables; those of a container replace them.
    pub env: Vec<(String, String)>,
    /// The user: `USER[:GROUP]`, by name or number, as in a Dockerfile.
    pub user: Option<String>,
    /// Working directory of the program.
    pub working_dir: Option<String>,
}

/// An image that can run here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Image {
    /// The value of `imageID` in the status of a container.
    pub(crate) id: String,
    pub(crate) root: Option<PathBuf>,
    pub(crate) entrypoint: Vec<String>,
    pub(crate) command: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) user: Option<String>,
    /// The administrator of the machine has chosen the user, so that it may be root.
    pub(crate) chosen_user: bool,
    pub(crate) working_dir: Option<String>,
}

/// The images of a Node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Images {
    /// Entries of the config file; the first that matches counts.
    pub mappings: Vec<Mapping>,
}

impl Images {
    /// Returns what a name of an image means, by the config file before what was loaded. `None`:
    /// nothing on this Node.
    pub(crate) fn find(&self, name: &str, store: &Store) -> Option<Image> {
        if name == HOST_IMAGE {
            return Some(Image::default());
        }
        let reference: Reference = name.parse().ok()?;
        let mapped = self.mappings.iter().find(|mapping| mapping.pattern.matches(&reference));
        mapped.map(Mapping::image).or_else(|| store.find(&reference))
    }
}

impl Mapping {
    fn image(&self) -> Image {
        Image {
            id: self.root.as_ref().map_or_else(|| HOST_IMAGE.to_owned(), |root| format!("file://{}", root.display())),
            root: self.root.clone(),
            entrypoint: self.entrypoint.clone(),
            command: self.command.clone(),
            env: self.env.clone(),
            user: self.user.clone(),
            chosen_user: self.user.is_some(),
            working_dir: self.working_dir.clone(),
        }
    }
}

/// The command line of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandLine<'a> {
    /// Words of the image, which are taken as they are.
    pub(crate) image: Vec<&'a str>,
    /// Words of the container after these, in which `$(VAR)` is replaced.
    pub(crate) container: Vec<&'a str>,
}

impl Image {
    /// Returns what a container with this image runs, by the table of the Kubernetes documentation
    /// ("Define a Command and Arguments for a Container"): `command` replaces the entrypoint and
    /// drops the image's command, `args` replace the latter.
    pub(crate) fn command_line<'a>(&'a self, container: &'a Value) -> CommandLine<'a> {
        let command = container.texts("command");
        let arguments = container.texts("args");
        let own = |words: &'a [String]| words.iter().map(String::as_str).collect::<Vec<_>>();
        let mut line = CommandLine { image: Vec::new(), container: command };
        if line.container.is_empty() {
            line.image = own(&self.entrypoint);
            if arguments.is_empty() {
                line.image.extend(own(&self.command));
            }
        }
        line.container.extend(arguments);
        line
    }

    /// Reads the image's lists of users and groups; the machine's, if the image has no files of its
    /// own.
    pub(crate) fn accounts(&self) -> io::Result<Accounts> {
        let Some(root) = &self.root else {
            let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
            return Ok(Accounts { passwd: read("/etc/passwd"), group: read("/etc/group") });
        };
        let root = File::open(root)?;
        let read = |path: &str| match mount::read_within(&root, Path::new(path), ACCOUNTS_SIZE) {
            Ok(text) => Ok(String::from_utf8_lossy(&text).into_owned()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            Err(error) => Err(error),
        };
        Ok(Accounts { passwd: read("etc/passwd")?, group: read("etc/group")? })
    }
}
