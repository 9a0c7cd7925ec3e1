use std::os::unix::fs::symlink;

use super::*;

#[test]
fn the_mode_of_a_new_folder_is_not_set_where_a_link_or_the_folder_of_another_user_is() {
    let folder = std::env::temp_dir().join(format!("fairlead-made-{}", std::process::id()));
    let outside = folder.join("outside");
    fs::create_dir_all(&outside).expect("made");
    fs::set_permissions(&outside, Permissions::from_mode(0o700)).expect("set");
    let opened = File::open(&folder).expect("opened");
    let mode = |path: &Path| path.metadata().expect("there").mode() & 0o7777;

    open_or_make_folder(&opened, Path::new("new"), Some(0o2777)).expect("made");
    assert_eq!(mode(&folder.join("new")), 0o2777);
    // A folder that is there stays as it is.
    open_or_make_folder(&opened, Path::new("outside"), Some(0o777)).expect("opened");
    // What another process may put there just after the folder was made.
    symlink("outside", folder.join("link")).expect("made");
    assert!(set_mode_of_own_folder(&folder.join("link"), 0o777).is_err());
    assert!(open_or_make_folder(&opened, Path::new("link"), Some(0o777)).is_err());
    assert!(make_file(&opened, Path::new("link")).is_err());
    assert_eq!(mode(&outside), 0o700);
    // Root alone can give a folder away.
    if chown(&outside, Some(12_345), None).is_ok() {
        set_mode_of_own_folder(&outside, 0o777).expect("left alone");
        assert_eq!(mode(&outside), 0o700);
    }
    fs::remove_dir_all(&folder).expect("removed");
}
