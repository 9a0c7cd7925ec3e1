//! A part of the program that runs beside a server: `fairlead control` and its like. Gone with the value that stands for it.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// A running component.
#[derive(Debug)]
pub struct Component {
    child: Child,
    home: TempDir,
}

impl Component {
    /// Starts `program` with these arguments. It may not be ready yet.
    pub fn start(program: impl AsRef<Path>, arguments: &[&str]) -> Component {
        let home = tempfile::tempdir().expect("a temporary directory");
        let log = File::create(home.path().join("log")).expect("a log");
        let child = Command::new(program.as_ref())
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a file can be had twice"))
            .stderr(log)
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", program.as_ref().display()));
        Component { child, home }
    }

    /// The number of its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has printed.
    pub fn log(&self) -> String {
        fs::read_to_string(self.home.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Component {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
