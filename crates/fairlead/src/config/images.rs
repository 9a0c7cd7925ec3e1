//! Which images there are on this machine: the key `images` of the config file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use fairlead_pods::images::{Images, Mapping, Pattern};
use serde::Deserialize;

use super::flags::Text;

/// An item of the list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(crate) struct ImageEntry {
    r#match: String,
    root: Option<PathBuf>,
    entrypoint: Vec<String>,
    command: Vec<String>,
    env: BTreeMap<String, Text>,
    user: Option<Text>,
    working_dir: Option<String>,
}

/// Returns what the entries mean, in their order.
pub(super) fn images(entries: Option<&[ImageEntry]>) -> anyhow::Result<Images> {
    let entries = entries.unwrap_or_default().iter().enumerate();
    let mappings = entries.map(|(index, entry)| mapping(entry).with_context(|| format!("images[{index}]")));
    Ok(Images { mappings: mappings.collect::<anyhow::Result<_>>()? })
}

fn mapping(entry: &ImageEntry) -> anyhow::Result<Mapping> {
    let ImageEntry { r#match, root, entrypoint, command, env, user, working_dir } = entry;
    let pattern = r#match.parse::<Pattern>().map_err(anyhow::Error::msg).context("match")?;
    match root.as_deref() {
        Some(root) if !root.is_absolute() => {
            bail!("root: want a directory that begins with /, found {}", root.display())
        }
        Some(root) if root == Path::new("/") => bail!("root: leave it out for the files of the machine"),
        None if user.is_some() => bail!("user: wants root, too; on the files of the machine a Pod chooses its user"),
        _ => {}
    }
    if let Some(folder) = working_dir.as_deref().filter(|folder| !folder.starts_with('/')) {
        bail!("workingDir: want a directory that begins with /, found {folder}");
    }
    if let Some(name) = env.keys().find(|name| name.is_empty() || name.contains(['=', '\0'])) {
        bail!("env: {name:?} is no name of a variable");
    }
    Ok(Mapping {
        pattern,
        root: root.clone(),
        entrypoint: entrypoint.clone(),
        command: command.clone(),
        env: env.iter().map(|(name, Text(value))| (name.clone(), value.clone())).collect(),
        user: user.as_ref().map(|Text(user)| user.clone()),
        working_dir: working_dir.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> anyhow::Result<Images> {
        let flags = super::super::parse_file(text)?;
        images(flags.images.as_deref())
    }

    #[test]
    fn an_image_is_a_directory_and_what_runs_in_it() {
        let text = "images:\n- match: agnhost:*\n  root: /srv/agnhost\n  entrypoint: [/agnhost]\n  command: [pause]\n  \
                    env: {PORT: 80}\n  user: 1000\n  workingDir: /data\n- match: '*'\n";
        let images = read(text).expect("images");
        let [first, second] = images.mappings.as_slice() else { panic!("{images:?}") };
        assert!(first.pattern.matches(&"registry.k8s.io/agnhost:2.59".parse().expect("a name")));
        assert_eq!(first.root.as_deref(), Some(Path::new("/srv/agnhost")));
        assert_eq!(
            (first.entrypoint.as_slice(), first.command.as_slice()),
            (&["/agnhost".to_owned()][..], &["pause".to_owned()][..])
        );
        assert_eq!(first.env, [("PORT".to_owned(), "80".to_owned())]);
        assert_eq!((first.user.as_deref(), first.working_dir.as_deref()), (Some("1000"), Some("/data")));
        assert_eq!((&second.root, &second.user), (&None, &None));
        assert_eq!(read("store: memory\n").expect("none"), Images::default());
    }

    #[test]
    fn mistakes_name_the_entry() {
        let check = |entry: &str, part: &str| {
            let error = format!("{:#}", read(&format!("images:\n- match: ok\n- {entry}\n")).expect_err(entry));
            assert!(error.contains(part), "{entry}: {error}");
        };
        check("{root: /srv}", "images[1]: match");
        check("{match: a, root: srv}", "images[1]: root");
        check("{match: a, root: /}", "images[1]: root");
        check("{match: a, user: root}", "images[1]: user");
        check("{match: a, workingDir: x}", "images[1]: workingDir");
        check("{match: a, env: {'a=b': c}}", "images[1]: env");
        check("{match: a, image: b}", "unknown key `image`");
    }
}
