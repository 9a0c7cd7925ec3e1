use super::*;

#[test]
fn patterns_fit_names() {
    for (pattern, name, expected) in [
        ("*.override", "a.override", true),
        ("*.override", ".override", true),
        ("*.override", "a.server", false),
        ("a?c", "abc", true),
        ("a?c", "ac", false),
        ("*a*b", "xaab", true),
        ("*a*b", "xba", false),
    ] {
        assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
    }
}

#[test]
fn imports_are_found_beside_the_file_that_names_them() {
    let dir = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).expect("a file");
    write("Corefile", ".:{$PORT} {\n import custom/*.override\n import plain\n}\nimport custom/*.server\n");
    fs::create_dir(dir.path().join("custom")).expect("a directory");
    write("custom/b.override", "log\n");
    write("custom/a.override", "errors\n");
    write("custom/x.server", "example.org {\n forward . 192.0.2.1\n}\n");
    write("plain", "cache 10\n");
    let variables = BTreeMap::from([("PORT".to_owned(), "1053".to_owned())]);
    let corefile = Corefile { path: dir.path().join("Corefile"), variables, settings: Settings::default() };
    let settings = corefile.read().expect("it is right");
    let [first, second] = settings.servers.as_slice() else { panic!("two blocks: {settings:?}") };
    assert_eq!((first.keys[0].port, first.plugins.log.len()), (1053, 1));
    assert!(first.plugins.errors.is_some() && first.plugins.cache.is_some());
    assert_eq!(second.plugins.forward.len(), 1);
    write("custom/b.override", "nonsense\n");
    let error = corefile.read().expect_err("a plugin that is none").to_string();
    assert!(error.contains("custom/b.override:1: nonsense: no such plugin here"), "{error}");
}
