use proptest::prelude::*;

use super::*;

#[test]
fn questions_are_framed() {
    assert_eq!(request(""), [0, 0, 0, 0, 0]);
    assert_eq!(request("ab"), [0, 0, 0, 0, 4, 0x0a, 2, b'a', b'b']);
    let long = request(&"x".repeat(300));
    assert_eq!(long[..8], [0, 0, 0, 0x01, 0x2f, 0x0a, 0xac, 0x02]);
}

#[test]
fn answers_are_read_and_foreign_fields_passed_over() {
    let check = |frame: &[u8], expect: Result<Health, &str>| assert_eq!(read(frame), expect, "{frame:?}");
    check(&[0, 0, 0, 0, 2, 8, 1], Ok(Health::Serving));
    check(&[0, 0, 0, 0, 0], Ok(Health::Unknown));
    check(&[0, 0, 0, 0, 2, 8, 2], Ok(Health::NotServing));
    check(&[0, 0, 0, 0, 2, 8, 9], Ok(Health::Other(9)));
    check(&[0, 0, 0, 0, 6, 0x12, 2, 7, 7, 8, 1], Ok(Health::Serving));
    check(&[0, 0, 0, 0, 7, 0x1d, 0, 0, 0, 0, 8, 3], Ok(Health::ServiceUnknown));
    check(&[], Err("the answer holds no message"));
    check(&[1, 0, 0, 0, 0], Err("the answer is compressed, which was not asked for"));
    check(&[0, 0, 0, 0, 9, 8, 1], Err("the answer ends in the middle"));
    check(&[0, 0, 0, 0, 1, 8], Err("the answer is no HealthCheckResponse"));
    check(&[0, 0, 0, 0, 1, 0x0b], Err("the answer is no HealthCheckResponse"));
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = read(&bytes);
        let framed = [&[0, 0, 0, 0, bytes.len() as u8][..], &bytes].concat();
        let _ = read(&framed);
    }
}
