//! `fairlead image`: the images of this machine's Pods that were loaded from files.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::{Args, Subcommand};
use fairlead_api::age::age;
use fairlead_api::quantity::Quantity;
use fairlead_pods::images::{Limits, Load, Loaded, Store};

use crate::cli::examples;
use crate::config::Environment;
use crate::pods::list::aligned;
use crate::wire::PODS;

/// Number of digits of a digest that tables show, as `docker images` does.
const DIGITS: usize = 12;

/// The options of `fairlead image`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ImageFlags {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Clone, Subcommand)]
enum Command {
    /// Unpack an image from a file or directory, so that Pods of this machine can have it
    #[command(after_help = examples::IMAGE_LOAD)]
    Load {
        /// An OCI image layout, as a directory or a tar file, or what `docker save` writes
        #[arg(value_name = "FILE|DIR")]
        from: PathBuf,
        /// The name of the image, in place of those in the file
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        /// The user of its containers, in place of the one in the file; it may be root
        #[arg(long, value_name = "USER[:GROUP]")]
        user: Option<String>,
        /// The most that an image may unpack to, in bytes
        #[arg(long, value_name = "SIZE", default_value = "16Gi")]
        max_size: String,
        #[command(flatten)]
        location: DataLocation,
    },
    /// List the images that were loaded
    #[command(after_help = examples::IMAGE_LS)]
    Ls {
        #[command(flatten)]
        location: DataLocation,
    },
    /// Remove images that no container is using
    #[command(after_help = examples::IMAGE_RM)]
    Rm {
        /// Names, digests or their first digits
        #[arg(value_name = "NAME|ID", required = true)]
        images: Vec<String>,
        #[command(flatten)]
        location: DataLocation,
    },
}

/// The data directory whose images are meant.
#[derive(Debug, Clone, Args)]
struct DataLocation {
    /// Directory in which everything is kept [default: as with up]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

impl DataLocation {
    fn store(&self, environment: &Environment) -> anyhow::Result<Store> {
        let data_dir = self.data_dir.clone().map_or_else(|| environment.data_dir(), Ok)?;
        Ok(Store::new(&data_dir.join(PODS)))
    }
}

/// Does what the command says.
pub(crate) fn run(flags: ImageFlags, environment: &Environment) -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    match flags.command {
        Command::Load { from, name, user, max_size, location } => {
            let limits = Limits { bytes: size(&max_size)?, ..Limits::default() };
            let load = Load { name, user, limits };
            for image in loaded(&location.store(environment)?, &from, &load)? {
                writeln!(out, "{} loaded: {}, {}", image.names.join(", "), short(&image.id), bytes(image.size))?;
            }
            Ok(())
        }
        Command::Ls { location } => {
            let images = location.store(environment)?.list();
            if images.is_empty() {
                return Ok(writeln!(out, "No images.")?);
            }
            let head = ["NAME", "ID", "SIZE", "AGE"].map(str::to_owned).to_vec();
            let now = jiff::Timestamp::now().as_second();
            let lines: Vec<Vec<String>> =
                std::iter::once(head).chain(images.iter().flat_map(|image| rows(image, now))).collect();
            Ok(out.write_all(aligned(&lines).as_bytes())?)
        }
        Command::Rm { images, location } => {
            let store = location.store(environment)?;
            for image in &images {
                writeln!(out, "{} removed", store.remove(image)?)?;
            }
            Ok(())
        }
    }
}

fn loaded(store: &Store, from: &Path, load: &Load) -> anyhow::Result<Vec<Loaded>> {
    store.load(from, load).with_context(|| format!("{} was not loaded", from.display()))
}

/// A line for each name of an image.
fn rows(image: &Loaded, now: i64) -> Vec<Vec<String>> {
    let age = age(&image.loaded, now);
    let names = if image.names.is_empty() { vec!["<none>".to_owned()] } else { image.names.clone() };
    names.into_iter().map(|name| vec![name, short(&image.id).to_owned(), bytes(image.size), age.clone()]).collect()
}

/// The first digits of a digest.
fn short(id: &str) -> &str {
    let hash = id.strip_prefix("sha256:").unwrap_or(id);
    hash.get(..DIGITS).unwrap_or(hash)
}

/// `12.3MiB`.
fn bytes(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match UNITS.iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => format!("{}.{}{name}", bytes / unit, bytes % unit * 10 / unit),
        None => format!("{bytes}B"),
    }
}

fn size(text: &str) -> anyhow::Result<u64> {
    let wrong = || anyhow!("--max-size: want a size such as 512Mi, found {text:?}");
    let quantity = Quantity::parse(text).map_err(|_| wrong())?;
    u64::try_from(quantity.milli() / 1000).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_shown() {
        assert_eq!([500, 1536, 5 << 20, 3 << 30].map(bytes), ["500B", "1.5KiB", "5.0MiB", "3.0GiB"]);
        assert_eq!(size("1Ki").ok(), Some(1024));
        assert!(size("much").is_err() && size("-1").is_err());
        assert_eq!(short("sha256:0123456789abcdef"), "0123456789ab");
    }
}
