use jiff::Timestamp;
use proptest::prelude::*;

use super::{Body, Change, Copy, Gap, Record};
use crate::Followed;

fn time() -> impl Strategy<Value = Timestamp> {
    (0..4_000_000_000_000_000i64).prop_map(|micros| Timestamp::from_microsecond(micros).expect("in range"))
}

fn kind() -> impl Strategy<Value = Followed> {
    prop::sample::select(Followed::ALL.to_vec())
}

fn body() -> impl Strategy<Value = Body> {
    let json = || prop::collection::vec(any::<u8>(), 0..30);
    prop_oneof![
        json().prop_map(Body::New),
        json().prop_map(Body::Whole),
        json().prop_map(Body::Difference),
        Just(Body::Gone),
        Just(Body::LeftOut),
    ]
}

fn copy() -> impl Strategy<Value = Copy> {
    (kind(), any::<u64>(), "[a-z]{0,5}", "[a-zä]{0,5}", prop::collection::vec(any::<u8>(), 0..30))
        .prop_map(|(kind, revision, namespace, name, json)| Copy { kind, revision, namespace, name, json })
}

fn record() -> impl Strategy<Value = Record> {
    let change = (time(), any::<bool>(), kind(), any::<u64>(), "[a-z]{0,5}", "[a-z]{0,5}", "[a-z]{0,5}", body());
    let change = change.prop_map(|(at, late, kind, revision, namespace, name, by, body)| {
        Record::Change(Change { at, late, kind, revision, namespace, name, by, body })
    });
    prop_oneof![
        change,
        (time(), prop::collection::vec(copy(), 0..5)).prop_map(|(at, copies)| Record::Copies(at, copies)),
        any::<u64>().prop_map(Record::Mark),
        (time(), time(), ".{0,9}").prop_map(|(from, to, why)| Record::Gap(Gap { from, to, why })),
        (time(), any::<u8>()).prop_map(|(at, format)| Record::Head(at, format)),
    ]
}

proptest! {
    #[test]
    fn records_are_read_as_they_were_written(record in record()) {
        let mut bytes = Vec::new();
        record.append(&mut bytes);
        let namespace = if let Record::Change(change) = &record { Some(change.namespace.as_bytes()) } else { None };
        prop_assert_eq!(Record::namespace_of_change(&bytes), namespace);
        prop_assert_eq!(Record::decode(&bytes), Some(record));
    }

    #[test]
    fn no_bytes_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..80), code in 0..7u8) {
        let _ = Record::decode(&bytes);
        if let Some(first) = bytes.first_mut() {
            *first = code;
        }
        let _ = Record::decode(&bytes);
        let _ = Record::time_of_change(&bytes);
        let _ = Record::namespace_of_change(&bytes);
    }
}

#[test]
fn copies_that_would_fill_the_memory_are_refused() {
    let bomb = super::encode_copies(Timestamp::UNIX_EPOCH, &vec![0; 64 << 20]);
    assert!(bomb.len() < 1 << 20, "it is small on disk");
    assert_eq!(Record::decode(&bomb), None);
}
