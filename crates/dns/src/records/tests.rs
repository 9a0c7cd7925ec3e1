use super::*;

#[test]
fn records_are_read_as_zone_files_write_them() {
    let check = |text: &str, rtype: u16, ttl: u32, rdata: &[u8]| {
        let record = parse(text).unwrap_or_else(|| panic!("{text}"));
        assert_eq!((record.rtype, record.ttl, &*record.rdata), (rtype, ttl, rdata), "{text}");
    };
    check("a.example. 60 IN A 192.0.2.1", 1, 60, &[192, 0, 2, 1]);
    check("a.example IN 60 A 192.0.2.1", 1, 60, &[192, 0, 2, 1]);
    check("a.example A 192.0.2.1", 1, 3600, &[192, 0, 2, 1]);
    check("a. 1 CNAME b.", 5, 1, b"\x01b\0");
    check("a. 1 IN MX 10 b.", 15, 1, b"\0\x0a\x01b\0");
    check("a. 1 IN SRV 1 2 80 b.", 33, 1, b"\0\x01\0\x02\0\x50\x01b\0");
    check("a. 1 IN TXT \"x y\" z", 16, 1, b"\x03x y\x01z");
    let soa = [b"\x01n\0\x01h\0".to_vec(), [1_u32, 2, 3, 4, 5].iter().flat_map(|n| n.to_be_bytes()).collect()].concat();
    check("a. 60 IN SOA n. h. (1 2 3 4 5) ; why", 6, 60, &soa);
}

#[test]
fn what_is_no_record_is_none() {
    for text in
        ["", "a.", "a. IN", "a. A", "a. A x", "a. A 1.2.3.4 5", "a. IN NOTYPE 1", "a. TXT \"x", "a..b. A 1.2.3.4"]
    {
        assert_eq!(parse(text), None, "{text}");
    }
}
