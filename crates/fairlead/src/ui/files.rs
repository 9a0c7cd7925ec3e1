//! The files of the page, which are part of the program.

use fairlead_server::pages::File;

/// Paths and what is there, as the build found them in `web/`.
const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/web.rs"));

/// Media types by how a name ends.
const MEDIA: &[(&str, &str)] = &[
    ("html", "text/html; charset=utf-8"),
    ("css", "text/css; charset=utf-8"),
    ("js", "text/javascript; charset=utf-8"),
    ("json", "application/json"),
    ("svg", "image/svg+xml"),
    ("png", "image/png"),
    ("ico", "image/x-icon"),
    ("woff2", "font/woff2"),
    ("txt", "text/plain; charset=utf-8"),
];

/// All files. One whose type is not known is left out: a browser would not use it.
pub(super) fn all() -> Vec<File> {
    FILES.iter().filter_map(|(path, bytes)| Some(File { path, media: media(path)?, bytes })).collect()
}

fn media(path: &str) -> Option<&'static str> {
    let (_, ending) = path.rsplit_once('.')?;
    MEDIA.iter().find(|(known, _)| *known == ending).map(|(_, media)| *media)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_page_has_a_known_type_and_the_page_begins_somewhere() {
        let unknown: Vec<_> = FILES.iter().map(|(path, _)| *path).filter(|path| media(path).is_none()).collect();
        assert_eq!(unknown, Vec::<&str>::new());
        assert!(all().iter().any(|file| file.path == "index.html"));
    }
}
