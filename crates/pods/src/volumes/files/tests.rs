use super::*;

fn content(text: &str) -> Content {
    Content { bytes: text.into(), mode: 0o644 }
}

fn check(steps: &[&[(&str, &str)]]) {
    let folder = std::env::temp_dir().join(format!("fairlead-files-{}-{}", std::process::id(), steps.len()));
    for step in steps {
        let files = step.iter().map(|(path, text)| ((*path).to_owned(), content(text))).collect();
        write(&folder, &files, None).expect("written");
        for (path, text) in *step {
            assert_eq!(fs::read_to_string(folder.join(path)).expect("readable"), *text);
        }
        let shown = fs::read_dir(&folder).expect("a folder").flatten();
        let shown = shown.filter(|entry| !entry.file_name().to_string_lossy().starts_with("..")).count();
        let first: std::collections::BTreeSet<_> = step.iter().filter_map(|(path, _)| path.split('/').next()).collect();
        assert_eq!(shown, first.len(), "{step:?}");
        assert_eq!(count(&folder.join(PRESENT)), step.len());
    }
    fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn files_are_replaced_added_and_removed() {
    check(&[&[("a", "1"), ("b/c", "2")], &[("a", "3"), ("b/c", "2")], &[("b/d", "4")], &[]]);
}

#[test]
fn the_same_files_are_left_alone() {
    let folder = std::env::temp_dir().join(format!("fairlead-same-{}", std::process::id()));
    let files = BTreeMap::from([("a".to_owned(), content("1"))]);
    write(&folder, &files, None).expect("written");
    let before = fs::read_link(folder.join(PRESENT)).expect("a link");
    write(&folder, &files, None).expect("written");
    assert_eq!(fs::read_link(folder.join(PRESENT)).expect("a link"), before);
    fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn paths_stay_inside() {
    let folder = std::env::temp_dir().join(format!("fairlead-paths-{}", std::process::id()));
    for path in ["../a", "/a", "..data", "", "a/../../b"] {
        let files = BTreeMap::from([(path.to_owned(), content("1"))]);
        assert!(write(&folder, &files, None).is_err(), "{path:?}");
    }
    fs::remove_dir_all(&folder).expect("removed");
}
