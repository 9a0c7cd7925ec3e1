//! Namespaces with and without names.

use std::fs;

use fairlead_kernel::netns::{self, Namespace};

use crate::lab::{in_namespace, tool};

#[test]
fn a_named_namespace_is_there_for_everybody_until_it_is_deleted() {
    in_namespace("a_named_namespace_is_there_for_everybody_until_it_is_deleted", || {
        let name = format!("fltest{}", std::process::id());
        let made = Namespace::create(&name).unwrap();
        assert!(tool("ip", &["netns", "list"]).contains(&name));
        assert!(netns::names().unwrap().contains(&name));
        let inode = || fs::read_link("/proc/thread-self/ns/net").unwrap();
        let (here, there) = (inode(), made.run(inode).unwrap());
        assert_ne!(here, there);
        assert_eq!(inode(), here, "only the thread of the work went there");
        assert_eq!(Namespace::named(&name).unwrap().run(inode).unwrap(), there);
        assert!(Namespace::create(&name).is_err(), "the name is taken");
        netns::delete(&name).unwrap();
        netns::delete(&name).unwrap();
        assert!(Namespace::named(&name).is_err());
        assert!(!netns::names().unwrap().contains(&name));
    });
}

#[test]
fn a_name_is_no_way_out_of_the_folder() {
    for name in ["", ".", "..", "a/b", "../x", "a\0b"] {
        assert!(Namespace::named(name).is_err(), "{name:?}");
        assert!(netns::delete(name).is_err(), "{name:?}");
    }
}
