use super::*;

fn accounts() -> Accounts {
    Accounts {
        passwd: "root:x:0:0:root:/root:/bin/sh\nweb:x:101:102:web:/srv:/bin/false\nbad\n".to_owned(),
        group: "root:x:0:\nweb:x:102:\nlog:x:4:web,other\nmore:x:5:other,web\n".to_owned(),
    }
}

#[test]
fn names_and_numbers_are_read_by_the_images_own_lists() {
    let check = |text: &str, user: u32, group: u32, groups: &[u32]| {
        assert_eq!(accounts().user(text), Ok(ImageUser { user, group, groups: groups.to_vec() }), "{text}");
    };
    check("root", 0, 0, &[]);
    check("0", 0, 0, &[]);
    check("web", 101, 102, &[4, 5]);
    check("101", 101, 102, &[4, 5]);
    check("1000", 1000, 0, &[]);
    check("1000:7", 1000, 7, &[]);
    check("web:log", 101, 4, &[]);
    for wrong in ["nobody", "web:nobody", "-1", "", "bad"] {
        assert!(accounts().user(wrong).is_err(), "{wrong:?}");
    }
    assert_eq!(Accounts::default().user("65532:65532").map(|user| user.user), Ok(65532));
}

#[test]
fn a_home_is_that_of_the_number() {
    assert_eq!(accounts().home(101).as_deref(), Some("/srv"));
    assert_eq!(accounts().home(5), None);
}
