use super::*;

#[test]
fn links_are_written_and_read() {
    let networks = ["192.0.2.0/24", "fd00::/64"].map(|net| net.parse().unwrap()).to_vec();
    let links = vec![
        Attachment { link: "eth0".into(), hardware: [2, 0, 0, 0, 0, 0x1f], networks },
        Attachment { link: "eth1.7".into(), hardware: [0xff; 6], networks: Vec::new() },
    ];
    let text = "eth0 02:00:00:00:00:1f 192.0.2.0/24 fd00::/64; eth1.7 ff:ff:ff:ff:ff:ff";
    assert_eq!(write(&links), text);
    assert_eq!(read(text), links);
}

#[test]
fn what_makes_no_sense_is_left_out() {
    let left = |text: &str| read(text).into_iter().map(|one| (one.link, one.networks.len())).collect::<Vec<_>>();
    let none: [(String, usize); 0] = [];
    for text in ["", ";;", "eth0", "eth0 02:00", "eth0 02:00:00:00:00:00:00", "eth0 02:00:00:00:00:zz 10.0.0.0/8"] {
        assert_eq!(left(text), none, "{text}");
    }
    assert_eq!(left("a 02:00:00:00:00:01 10.0.0.0/8 10.0.0.0/99 x"), [("a".to_owned(), 1)]);
    assert_eq!(left(&"a 02:00:00:00:00:01;".repeat(1000)).len(), MOST);
}

#[test]
fn a_lease_is_read() {
    let lease = |holder: &str| {
        let text = format!(
            r#"{{"metadata": {{"name": "x", "annotations": {{"fairlead.dev/networks": "a 02:00:00:00:00:01"}}}},
                "spec": {{"holderIdentity": {holder}, "renewTime": "2026-01-01T00:00:00.000001Z"}}}}"#
        );
        Beat::read(text.as_bytes()).unwrap()
    };
    assert_eq!((lease(r#""n1""#).left, lease(r#""""#).left, lease("null").left), (false, true, true));
    assert_eq!(lease("null").stamp, "2026-01-01T00:00:00.000001Z");
    assert_eq!((lease("null").attachments.len(), lease("null").lasts), (1, None));
    let slow = |seconds: u64| {
        let text = format!(r#"{{"metadata": {{"name": "x"}}, "spec": {{"leaseDurationSeconds": {seconds}}}}}"#);
        Beat::read(text.as_bytes()).unwrap().lasts.unwrap().as_secs()
    };
    assert_eq!((slow(12), slow(u64::MAX)), (12, LONGEST));
    assert_eq!(Beat::read(b"{}"), None);
    assert_eq!(node(&Key::new("kube-node-lease", "fairlead-announcer-n1")), Some("n1"));
    assert_eq!(node(&Key::new("kube-node-lease", "n1")), None);
}

#[test]
fn no_two_stamps_are_the_same() {
    let mut last = String::new();
    for _ in 0..1000 {
        let next = Heart::stamp(&last);
        assert_ne!(next, last);
        last = next;
    }
}
