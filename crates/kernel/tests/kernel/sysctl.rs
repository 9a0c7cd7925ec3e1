//! Kernel parameters of a namespace.

use fairlead_kernel::sysctl;

use crate::lab::in_namespace;

#[test]
fn a_parameter_is_read_set_and_set_only_once() {
    in_namespace("a_parameter_is_read_set_and_set_only_once", || {
        let name = "net.ipv4.conf.lo.route_localnet";
        sysctl::write(name, "0").unwrap();
        assert_eq!(sysctl::ensure(name, "1").unwrap().as_deref(), Some("0"));
        assert_eq!(sysctl::ensure(name, "1").unwrap(), None);
        assert_eq!(sysctl::read(name).unwrap(), "1");
    });
}

#[test]
fn a_parameter_that_is_not_there_is_named_in_the_error() {
    let error = sysctl::write("net.ipv4.no_such_thing", "1").unwrap_err();
    assert!(error.to_string().contains("net.ipv4.no_such_thing to 1"), "{error}");
    assert!(error.is_not_found());
    for name in ["", "net..ipv4", "net.//.x", "."] {
        assert!(sysctl::read(name).is_err(), "{name:?}");
    }
}
