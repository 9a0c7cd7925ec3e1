//! What is a kernel parameter set to, in the namespace of this thread?

use std::fs;
use std::io;
use std::path::PathBuf;

use crate::error::Error;

/// The value of a parameter such as `net.ipv4.ip_forward`, without the line's end. In the name of an interface a dot is
/// written as a slash, as `sysctl` has it.
pub fn read(name: &str) -> Result<String, Error> {
    let text = fs::read_to_string(path(name)?).map_err(failed(format!("reading the kernel parameter {name}")))?;
    Ok(text.trim_end().to_owned())
}

/// Sets a parameter.
pub fn write(name: &str, value: &str) -> Result<(), Error> {
    fs::write(path(name)?, value).map_err(failed(format!("setting the kernel parameter {name} to {value}")))
}

/// Sets a parameter if it has another value, and returns that value.
pub fn ensure(name: &str, value: &str) -> Result<Option<String>, Error> {
    let before = read(name)?;
    if before == value {
        return Ok(None);
    }
    write(name, value)?;
    Ok(Some(before))
}

fn path(name: &str) -> Result<PathBuf, Error> {
    // A dot separates, a slash stands for a dot: `net.ipv4.conf.eth0/1.forwarding`.
    let swap = |character| match character {
        '.' => '/',
        '/' => '.',
        other => other,
    };
    let path: String = name.chars().map(swap).collect();
    let fine = !path.is_empty() && path.split('/').all(|part| !part.is_empty() && part != ".." && part != ".");
    if !fine {
        return Err(Error::Malformed("no name of a kernel parameter"));
    }
    // Parameters of the network are those of the namespace this thread is in.
    Ok(PathBuf::from("/proc/sys").join(path))
}

fn failed(action: String) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::System { action, source }
}
