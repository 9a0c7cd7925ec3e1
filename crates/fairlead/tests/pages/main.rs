//! The page's server side, as a browser meets it: signing in, files, what a session may do, and the data the page shows.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod board;
mod browser;
mod files;
mod junk;
mod machine;
mod rights;
mod sessions;
