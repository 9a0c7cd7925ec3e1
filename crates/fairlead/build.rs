//! Puts the files of the page into the program: whatever is in `web/`, by its path there.

#![allow(clippy::print_stdout, reason = "so cargo is told what this depends on")]

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let from = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo says it")).join("web");
    println!("cargo:rerun-if-changed={}", from.display());
    let mut files = Vec::new();
    gather(&from, &mut files)?;
    files.sort();
    let mut table = String::from("&[\n");
    for file in &files {
        println!("cargo:rerun-if-changed={}", file.display());
        let name = file.strip_prefix(&from).map_err(io::Error::other)?;
        let _ = writeln!(
            table,
            "    ({:?}, include_bytes!({:?})),",
            name.display().to_string(),
            file.display().to_string()
        );
    }
    table.push_str("]\n");
    fs::write(PathBuf::from(env::var_os("OUT_DIR").expect("cargo says it")).join("web.rs"), table)
}

fn gather(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        match path.is_dir() {
            true => gather(&path, files)?,
            false => files.push(path),
        }
    }
    Ok(())
}
