use super::*;

/// The last number below the bound, then the one before it, and so on.
fn descending() -> impl FnMut(u64) -> u64 {
    let mut step = 0;
    move |below| {
        step += 1;
        (below - 1).saturating_sub(step % below)
    }
}

#[test]
fn the_map_is_one_large_number_highest_byte_first() {
    let mut ports = NodePorts::new(30000..=32767);
    let write = |ports: &NodePorts| ports.write(Value::Null);
    assert_eq!(
        write(&ports),
        json!({"kind": "RangeAllocation", "apiVersion": "v1", "metadata": {}, "range": "30000-32767", "data": ""})
    );
    ports.take(30000);
    assert_eq!(write(&ports).text("data"), STANDARD.encode([1]));
    ports.take(30009);
    assert_eq!(write(&ports).text("data"), STANDARD.encode([2, 1]));
    assert_eq!(NodePorts::read(&write(&ports), 30000..=32767), Some(ports));
}

#[test]
fn ports_of_both_ranges_stay_in_use_when_the_range_changes() {
    let mut ports = NodePorts::new(30000..=32767);
    ports.take(30010);
    ports.take(32000);
    let moved = NodePorts::read(&ports.write(Value::Null), 31000..=33000).expect("a map");
    assert_eq!(moved.in_use().collect::<Vec<_>>(), [32000]);
}

#[test]
fn what_is_no_map_is_not_read() {
    for object in [json!({}), json!({"range": "x-y"}), json!({"range": "1-2", "data": "?"})] {
        assert_eq!(NodePorts::read(&object, 30000..=32767), None);
    }
}

#[test]
fn the_static_band_is_used_last() {
    let mut ports = NodePorts::new(30000..=32767);
    let mut random = descending();
    for _ in 86..2768 {
        assert!(ports.take_any(&mut random).expect("a free port") >= 30086);
    }
    for _ in 0..86 {
        assert!(ports.take_any(&mut random).expect("a free port") < 30086);
    }
    assert_eq!(ports.take_any(&mut random), None);
    ports.release(31000);
    assert_eq!(ports.take_any(&mut random), Some(31000));
}

#[test]
fn bands_have_the_documented_sizes() {
    for (size, expected) in [(2768, 86), (16, 0), (17, 16), (512, 16), (1024, 32), (10_000, 128)] {
        assert_eq!(band(size), expected);
    }
}

#[test]
fn a_port_outside_the_range_cannot_be_taken() {
    let mut ports = NodePorts::new(30000..=30010);
    assert!(!ports.take(29999) && !ports.take(30011));
    assert!(ports.take(30010) && !ports.take(30010));
}
