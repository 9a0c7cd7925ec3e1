//! Names of images, and patterns that match them. Pure.

use std::str::FromStr;

#[cfg(test)]
mod tests;

/// The registry and the repository of a name that says neither (distribution/reference,
/// normalize.go).
const REGISTRY: &str = "docker.io";
const LIBRARY: &str = "library";

/// The name of an image: `registry.k8s.io/e2e-test-images/agnhost:2.59`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// Registry and repository, as `docker.io/library/nginx` for `nginx`.
    pub(crate) name: String,
    /// `latest` where the name has neither a tag nor a digest; empty where it has a digest alone.
    pub(crate) tag: String,
    /// `sha256:...`; empty where the name has none.
    pub(crate) digest: String,
}

impl FromStr for Reference {
    type Err = String;

    fn from_str(text: &str) -> Result<Reference, String> {
        let Parts { name, tag, digest } = parts(text)?;
        let has_registry = name.split_once('/').is_some_and(|(first, _)| is_registry(first));
        let name = match (has_registry, name.contains('/')) {
            (true, _) => name.to_owned(),
            (false, true) => format!("{REGISTRY}/{name}"),
            (false, false) => format!("{REGISTRY}/{LIBRARY}/{name}"),
        };
        let tag = tag.unwrap_or(if digest.is_some() { "" } else { "latest" });
        Ok(Reference { name, tag: tag.to_owned(), digest: digest.unwrap_or_default().to_owned() })
    }
}

impl std::fmt::Display for Reference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)?;
        if !self.tag.is_empty() {
            write!(f, ":{}", self.tag)?;
        }
        if self.digest.is_empty() { Ok(()) } else { write!(f, "@{}", self.digest) }
    }
}

/// A pattern of names of images: `agnhost:*`, `registry.k8s.io/*/agnhost:2.?`, `*`.
///
/// Its path is compared with the end of the image's path, component by component; its tag and its
/// digest match all where it has none. `*` stands for any characters but `/`, `?` for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    path: Vec<String>,
    tag: Option<String>,
    digest: Option<String>,
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Pattern, String> {
        let Parts { name, tag, digest } = parts(text)?;
        Ok(Pattern {
            path: name.split('/').map(str::to_owned).collect(),
            tag: tag.map(str::to_owned),
            digest: digest.map(str::to_owned),
        })
    }
}

impl Pattern {
    /// Returns true if an image has such a name.
    pub fn matches(&self, image: &Reference) -> bool {
        let path: Vec<&str> = image.name.split('/').collect();
        let Some(before) = path.len().checked_sub(self.path.len()) else { return false };
        let fits = |pattern: &Option<String>, text: &str| pattern.as_ref().is_none_or(|pattern| glob(pattern, text));
        self.path.iter().zip(&path[before..]).all(|(pattern, part)| glob(pattern, part))
            && fits(&self.tag, &image.tag)
            && fits(&self.digest, &image.digest)
    }
}

/// A name in pieces.
struct Parts<'a> {
    name: &'a str,
    tag: Option<&'a str>,
    digest: Option<&'a str>,
}

fn parts(text: &str) -> Result<Parts<'_>, String> {
    let (rest, digest) = match text.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (text, None),
    };
    // A colon before the last slash belongs to the port of the registry.
    let path_end = rest.rfind('/').map_or(0, |slash| slash + 1);
    let (name, tag) = match rest[path_end..].find(':') {
        Some(colon) => (&rest[..path_end + colon], Some(&rest[path_end + colon + 1..])),
        None => (rest, None),
    };
    let empty = name.split('/').any(str::is_empty) || tag == Some("") || digest == Some("");
    if empty || text.contains(char::is_whitespace) || text.contains(char::is_control) {
        return Err(format!("{text:?} is no name of an image: want [REGISTRY/]REPOSITORY[:TAG][@DIGEST]"));
    }
    Ok(Parts { name, tag, digest })
}

/// Returns true if the first component of a name is a registry and not a part of the repository.
fn is_registry(component: &str) -> bool {
    component == "localhost" || component.contains(['.', ':'])
}

/// Returns true if a text matches a pattern of `*` and `?`. The time is at most the product of
/// their lengths.
fn glob(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let mut at = 0;
    let mut read = 0;
    // The last star, and the end of the text it stands for.
    let mut star: Option<(usize, usize)> = None;
    while read < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, read));
                at += 1;
            }
            Some(c) if *c == '?' || *c == text[read] => {
                at += 1;
                read += 1;
            }
            _ => {
                // The last star stands for one more.
                let Some((place, end)) = star else { return false };
                star = Some((place, end + 1));
                at = place + 1;
                read = end + 1;
            }
        }
    }
    pattern[at..].iter().all(|c| *c == '*')
}
