//! Rules of iptables through its own programs, in both variants.

use fairlead_kernel::Error;
use fairlead_kernel::iptables::{Iptables, Variant, Version};

use crate::lab::in_namespace;

fn each(test: &str, work: impl Fn(Iptables) + Sync) {
    for variant in [Variant::Legacy, Variant::Nft] {
        for version in [Version::V4, Version::V6] {
            let tool = Iptables { variant, version };
            in_namespace(test, || match tool.is_available() {
                true => work(tool),
                false => fairlead_testkit::need::skip(test, "iptables"),
            });
        }
    }
}

#[test]
fn rules_are_added_and_others_stay() {
    each("rules_are_added_and_others_stay", |tool| {
        tool.restore("*nat\n:OTHER - [0:0]\n-A OTHER -j RETURN\nCOMMIT\n").unwrap();
        tool.restore("*nat\n:FAIRLEAD-SERVICES - [0:0]\n-A FAIRLEAD-SERVICES -p tcp --dport 80 -j RETURN\nCOMMIT\n")
            .unwrap();
        let saved = tool.save("nat").unwrap();
        assert!(saved.contains("-A OTHER -j RETURN"), "{saved}");
        assert!(saved.contains("-A FAIRLEAD-SERVICES -p tcp -m tcp --dport 80 -j RETURN"), "{saved}");
        // A chain that is named is emptied first.
        tool.restore("*nat\n:FAIRLEAD-SERVICES - [0:0]\nCOMMIT\n").unwrap();
        assert!(!tool.save("nat").unwrap().contains("--dport 80"));
    });
}

#[test]
fn a_mistake_names_its_line_and_changes_nothing() {
    each("a_mistake_names_its_line_and_changes_nothing", |tool| {
        let text = "*nat\n:FAIRLEAD-SERVICES - [0:0]\n-A FAIRLEAD-SERVICES --nonsense 1\nCOMMIT\n";
        for error in [tool.check(text).unwrap_err(), tool.restore(text).unwrap_err()] {
            let Error::Tool { line, message, .. } = &error else { panic!("{error}") };
            assert!(matches!(line, Some(3 | 4)), "{error}");
            assert!(!message.is_empty());
        }
        assert!(!tool.save("nat").unwrap().contains("FAIRLEAD"));
    });
}

#[test]
fn a_table_that_is_not_there_is_an_error_of_the_tool() {
    each("a_table_that_is_not_there_is_an_error_of_the_tool", |tool| {
        assert!(matches!(tool.save("nonsense").unwrap_err(), Error::Tool { .. }));
    });
}
