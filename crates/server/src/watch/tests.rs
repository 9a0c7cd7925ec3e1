//! Events that watches share.

use super::*;
use crate::table::Include;

fn key<'a>(object: &'a str, revision: u64, event: &'static str, second: i64) -> FrameKey<'a> {
    let of = FrameForm::of(&fairlead_api::kinds::SERVICE, Media::Json, Shape::Object, Include::Metadata, false);
    FrameKey { object, revision: Revision(revision), event, form: FrameForm { second, ..of } }
}

#[test]
fn an_event_is_written_once_for_all_watches_of_its_form() {
    let frames = frames::Frames::default();
    let first = frames.get(&key("a", 1, "ADDED", 0), || Bytes::from(vec![1; 100]));
    let second = frames.get(&key("a", 1, "ADDED", 0), || panic!("it is there"));
    assert_eq!(first.as_ptr(), second.as_ptr());
    for other in [key("b", 1, "ADDED", 0), key("a", 2, "ADDED", 0), key("a", 1, "MODIFIED", 0), key("a", 1, "ADDED", 5)]
    {
        assert_eq!(frames.get(&other, || Bytes::from_static(b"other")), "other");
    }
}

#[test]
fn written_events_are_bounded_in_bytes() {
    let frames = frames::Frames::default();
    let mut alive = Vec::new();
    for revision in 0..200 {
        let frame = frames.get(&key("a", revision, "ADDED", 0), || Bytes::from(vec![1; 1 << 20]));
        alive.push(frame);
    }
    let kept = alive.iter().filter(|frame| !frame.is_unique()).count();
    assert!(kept <= 17, "{kept}");
}
