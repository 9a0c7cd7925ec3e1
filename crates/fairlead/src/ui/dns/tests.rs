use std::sync::Arc;

use fairlead_explain::Change as Known;

use super::*;

fn objects() -> Objects {
    let mut objects = Objects::default();
    let service = json!({
        "metadata": {"name": "web", "namespace": "shop"}, "spec": {"clusterIP": "None", "clusterIPs": ["None"]},
    });
    let namespace = json!({"metadata": {"name": "shop"}});
    objects.apply([
        Known::Namespace(Key::new("", "shop"), Some(Arc::new(serde_json::from_value(namespace).unwrap()))),
        Known::Service(Key::new("shop", "web"), Some(Arc::new(serde_json::from_value(service).unwrap()))),
    ]);
    objects
}

#[track_caller]
fn check_why(name: &str, expected: &str) {
    let found = why(name, rtype::A, &objects(), "cluster.local").unwrap_or_default();
    assert!(found.contains(expected), "{name}: {found:?}");
}

#[test]
fn a_name_without_records_is_told_why() {
    check_why("nobody.shop.svc.cluster.local.", "nobody");
    check_why("web.nowhere.svc.cluster.local.", "nowhere");
    check_why("web.shop.svc.cluster.local.", "endpoint");
    check_why("example.org.", "zone");
}

#[test]
fn data_is_written_as_zone_files_write_it() {
    let record = |rtype, bytes: &[u8]| data(&Record::new("a.test".parse().unwrap(), rtype, 5, bytes));
    assert_eq!(record(rtype::A, &[10, 0, 0, 1]), "10.0.0.1");
    assert_eq!(record(rtype::A, &[10, 0, 0]), "\\# 3 0a0000");
    assert_eq!(record(rtype::SRV, b"\0\0\0\x64\0\x50\x03web\x04test\0"), "0 100 80 web.test.");
    assert_eq!(record(rtype::TXT, b"\x02hi\x05a\"b"), "\"hi\" \"a\\\"b\"");
    assert_eq!(record(rtype::CNAME, b"\x03web\0"), "web.");
    assert_eq!(record(999, &[1]), "\\# 1 01");
}

#[test]
fn senders_and_types_are_read_or_refused() {
    assert_eq!(sender("").ok(), Some(None));
    assert_eq!(sender("node").ok(), Some(None));
    assert_eq!(sender("pod/web").ok(), Some(Some(Key::new("default", "web"))));
    assert_eq!(sender("pod/shop/web").ok(), Some(Some(Key::new("shop", "web"))));
    for junk in ["pod/", "pod//x", "svc/web", "pod/a/b/c", "10.0.0.1"] {
        assert_eq!(sender(junk).map_err(|failure| failure.code), Err(400), "{junk}");
    }
    assert_eq!(rtype_of("aaaa").ok(), Some(rtype::AAAA));
    assert_eq!(rtype_of("AXFR").map_err(|failure| failure.code), Err(400));
}
