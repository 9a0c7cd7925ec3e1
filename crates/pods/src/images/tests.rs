use serde_json::json;

use super::*;

/// One without images.
fn store() -> Store {
    Store::new(Path::new("/nowhere"))
}

fn image() -> Image {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    Image { entrypoint: words(&["/entry", "-x"]), command: words(&["cmd"]), ..Image::default() }
}

#[test]
fn command_and_args_replace_those_of_the_image_by_kubernetes_table() {
    let check = |container: serde_json::Value, words: &[&str]| {
        let (image, mut found) = (image(), Vec::new());
        let line = image.command_line(&container);
        found.extend(line.image);
        found.extend(line.container);
        assert_eq!(found, words, "{container}");
    };
    check(json!({}), &["/entry", "-x", "cmd"]);
    check(json!({"command": ["mine"]}), &["mine"]);
    check(json!({"args": ["a", "b"]}), &["/entry", "-x", "a", "b"]);
    check(json!({"command": ["mine"], "args": ["a"]}), &["mine", "a"]);
    check(json!({"command": [], "args": []}), &["/entry", "-x", "cmd"]);
}

#[test]
fn the_first_mapping_that_matches_counts_and_host_is_never_mapped() {
    let mapping = |pattern: &str, root: &str| Mapping {
        pattern: pattern.parse().expect("a pattern"),
        root: Some(root.into()),
        entrypoint: Vec::new(),
        command: Vec::new(),
        env: Vec::new(),
        user: None,
        working_dir: None,
    };
    let images = Images { mappings: vec![mapping("web:1", "/one"), mapping("*", "/all"), mapping("web", "/never")] };
    let root =
        |name: &str| images.find(name, &store()).and_then(|image| image.root).map(|root| root.display().to_string());
    assert_eq!(root("example.com/web:1").as_deref(), Some("/one"));
    assert_eq!(root("web").as_deref(), Some("/all"));
    assert_eq!(images.find("host", &store()), Some(Image::default()));
    assert_eq!(images.find("not a name", &store()), None);
    assert_eq!(images.find("web:1", &store()).map(|image| image.id).as_deref(), Some("file:///one"));
    assert_eq!(Images::default().find("web", &store()), None);
}
