use proptest::prelude::*;

use super::{Frames, put};

fn file(records: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    records.iter().for_each(|record| put(&mut bytes, record));
    bytes
}

fn records() -> impl Strategy<Value = Vec<Vec<u8>>> {
    prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..8)
}

/// Which record the byte at a place belongs to.
fn record_at(records: &[Vec<u8>], place: usize) -> usize {
    let mut end = 0;
    records
        .iter()
        .position(|record| {
            end += 8 + record.len();
            place < end
        })
        .unwrap_or(records.len())
}

proptest! {
    #[test]
    fn what_was_put_is_read(records in records()) {
        let bytes = file(&records);
        let mut frames = Frames::new(&bytes);
        let read: Vec<Vec<u8>> = frames.by_ref().map(<[u8]>::to_vec).collect();
        prop_assert_eq!(read, records);
        prop_assert_eq!(frames.whole(), bytes.len());
    }

    #[test]
    fn a_cut_loses_at_most_the_tail(records in records(), cut in any::<prop::sample::Index>()) {
        let bytes = file(&records);
        let cut = cut.index(bytes.len());
        let read: Vec<Vec<u8>> = Frames::new(&bytes[..cut]).map(<[u8]>::to_vec).collect();
        prop_assert_eq!(&read[..], &records[..record_at(&records, cut)]);
    }

    #[test]
    fn a_flipped_bit_loses_at_most_the_tail(
        records in records(), place in any::<prop::sample::Index>(), bit in 0..8u8,
    ) {
        let mut bytes = file(&records);
        let place = place.index(bytes.len());
        bytes[place] ^= 1 << bit;
        let read: Vec<Vec<u8>> = Frames::new(&bytes).map(<[u8]>::to_vec).collect();
        prop_assert_eq!(&read[..], &records[..record_at(&records, place)]);
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut frames = Frames::new(&bytes);
        let _ = frames.by_ref().count();
        prop_assert!(frames.whole() <= bytes.len());
    }
}
