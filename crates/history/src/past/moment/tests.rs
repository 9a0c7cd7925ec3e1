use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tempfile::TempDir;

use super::moment;
use crate::batch::Batch;
use crate::record::{Body, Change, Gap, Record};
use crate::segments::Segments;
use crate::{Bounds, Followed, History};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a time")
}

fn batch(record: Record) -> Batch {
    let mut batch = Batch::default();
    batch.push(&record);
    batch
}

fn change(second: i64) -> Record {
    Record::Change(Change {
        at: at(second),
        late: false,
        kind: Followed::Service,
        revision: 7,
        namespace: "default".to_owned(),
        name: "web".to_owned(),
        by: String::new(),
        body: Body::New(b"{}".to_vec()),
    })
}

fn gap(from: i64, to: i64) -> Record {
    Record::Gap(Gap { from: at(from), to: at(to), why: "they could not be written".to_owned() })
}

#[test]
fn a_moment_in_a_gap_says_so_whichever_file_tells_of_it() {
    let dir = TempDir::new().expect("a directory");
    let bounds = Bounds { size: 1 << 20, age: Duration::from_secs(3600) };
    let history = History::new(bounds, Arc::new(|| at(1000)), None);
    let (mut segments, _) = Segments::open(dir.path(), bounds).expect("it opens");
    segments.begin(at(100), &Batch::default()).expect("begun");
    segments.append(at(120), &batch(change(120))).expect("written");
    segments.append(at(150), &batch(gap(130, 150))).expect("written");
    // What was seen from 150 on could not be written until another file was begun.
    segments.begin(at(190), &batch(gap(150, 190))).expect("begun");
    history.shared.publish(segments.all());

    let subject = "svc/default/web".parse().expect("a subject");
    let check = |second: i64, wanted: Option<(i64, i64)>| {
        let seen = moment(&history.shared, &subject, at(second)).expect("it is kept");
        let gap = seen.gap.map(|gap| (gap.from.as_second(), gap.to.as_second()));
        assert_eq!(gap, wanted, "at {second}");
    };
    check(120, None);
    check(129, None);
    check(130, Some((130, 150)));
    check(149, Some((130, 150)));
    check(150, Some((150, 190)));
    check(189, Some((150, 190)));
    check(190, None);
    check(900, None);
}
