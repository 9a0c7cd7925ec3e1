//! How does a process become the container's program? As its user, in its folder, with its streams, and nothing else of ours.

use std::ffi::{CString, NulError};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use fairlead_kernel::process;

use super::Streams;
use super::launch::Program;

/// Becomes it; comes back only with the reason why not, and the code to end with.
pub(super) fn become_program(program: &Program, streams: &Streams) -> (String, i32) {
    match prepare(program, streams) {
        Ok((path, arguments, environment)) => {
            let error = process::execute(&path, &arguments, &environment);
            (format!("exec: {:?}: {error}", program.arguments[0]), 126)
        }
        Err(failed) => failed,
    }
}

type Prepared = (CString, Vec<CString>, Vec<CString>);

fn prepare(program: &Program, streams: &Streams) -> Result<Prepared, (String, i32)> {
    let failed = |error: fairlead_kernel::Error| (error.to_string(), 126);
    process::new_session().map_err(failed)?;
    if streams.tty {
        process::control_terminal(streams.input.as_fd()).map_err(failed)?;
    }
    process::set_streams(streams.input.as_fd(), streams.output.as_fd(), streams.complaints.as_fd()).map_err(failed)?;
    if program.default_seccomp {
        // While the process has the capability to: without it no_new_privs would have to be set,
        // and allowPrivilegeEscalation could not be had.
        process::refuse_system_calls(program.who.capabilities).map_err(failed)?;
    }
    program.who.identity().take().map_err(failed)?;
    // Only now: whoever becomes another user is no longer tied to anybody.
    process::end_with_parent().map_err(failed)?;
    std::env::set_current_dir(&program.folder)
        .map_err(|error| (format!("the working directory {:?}: {error}", program.folder), 126))?;
    let path = find(program)?;
    texts(program, &path).map_err(|_| ("an argument or a variable contains a NUL".to_owned(), 126))
}

fn texts(program: &Program, path: &Path) -> Result<Prepared, NulError> {
    let arguments = program.arguments.iter().map(|argument| CString::new(argument.as_str()));
    let environment = program.environment.iter().map(|(name, value)| CString::new(format!("{name}={value}")));
    let path = CString::new(path.as_os_str().as_encoded_bytes())?;
    Ok((path, arguments.collect::<Result<_, _>>()?, environment.collect::<Result<_, _>>()?))
}

/// The file of a program, looked for in the folders of its own `PATH`.
fn find(program: &Program) -> Result<PathBuf, (String, i32)> {
    let Some(name) = program.arguments.first().filter(|name| !name.is_empty()) else {
        return Err(("no command specified".to_owned(), 127));
    };
    if name.contains('/') {
        return Ok(PathBuf::from(name));
    }
    let path = program.environment.iter().rev().find(|(name, _)| name == "PATH").map_or("", |(_, value)| value);
    let candidates = path.split(':').map(|folder| Path::new(if folder.is_empty() { "." } else { folder }).join(name));
    let mut runnable = candidates.filter(|file| {
        file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
    });
    runnable.next().ok_or_else(|| (format!("exec: {name:?}: executable file not found in $PATH"), 127))
}
