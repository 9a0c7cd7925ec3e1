use super::message::attribute_path;
use super::*;

#[test]
fn what_is_written_is_read_back() {
    let mut writer = Writer::new();
    writer.begin(0x0a03, flag::ACK, 7, &[2, 0, 0, 0]);
    writer.text(1, "filter");
    writer.u32_be(2, 0x0102_0304);
    writer.nest(3, |writer| {
        writer.u8(1, 9);
        writer.u64_be(2, u64::MAX);
        writer.bytes(4, &[1, 2, 3, 4, 5]);
    });
    writer.end();

    let messages: Vec<Message<'_>> = Messages::new(writer.as_bytes()).collect();
    assert_eq!(messages.len(), 1);
    assert_eq!((messages[0].kind, messages[0].flags, messages[0].sequence), (0x0a03, 5, 7));
    let attributes = messages[0].attributes(4);
    assert_eq!(attributes.text(1).as_deref(), Some("filter"));
    assert_eq!(attributes.u32_be(2), Some(0x0102_0304));
    let inner = attributes.nested(3);
    assert_eq!(inner.find(1).and_then(|one| one.u8()), Some(9));
    assert_eq!(inner.u64_be(2), Some(u64::MAX));
    assert_eq!(inner.bytes(4), Some(&[1, 2, 3, 4, 5][..]));
    assert_eq!(inner.u32_be(4), None, "a number of another length is no number");
}

#[test]
fn the_path_to_an_attribute_names_every_level() {
    let mut writer = Writer::new();
    writer.begin(0, 0, 1, &[0; 4]);
    writer.text(1, "table");
    writer.nest(4, |writer| {
        writer.u32_be(1, 1);
        writer.nest(2, |writer| writer.u32_be(9, 1));
    });
    writer.end();
    let bytes = writer.as_bytes();
    let inner = bytes.len() - 8;
    assert_eq!(attribute_path(bytes, 20, inner), [4, 2, 9]);
    assert_eq!(attribute_path(bytes, 20, 20), [1]);
    assert_eq!(attribute_path(bytes, 20, 10_000), [0u16; 0]);
}

#[test]
fn a_length_that_does_not_fit_is_noticed() {
    let mut writer = Writer::new();
    writer.begin(0, 0, 1, &[]);
    writer.nest(1, |writer| (0..20).for_each(|_| writer.bytes(1, &[0; 4000])));
    writer.end();
    assert!(writer.is_too_long());
}

#[test]
fn random_bytes_are_read_without_harm() {
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..200_000 {
        let length = random.usize(..200);
        let mut bytes: Vec<u8> = std::iter::repeat_with(|| random.u8(..)).take(length).collect();
        // Small lengths are what makes a reader go deep.
        for at in (0..length.saturating_sub(4)).step_by(4) {
            if random.bool() {
                let small = random.u16(..60).to_ne_bytes();
                bytes[at..at + 2].copy_from_slice(&small);
            }
        }
        for message in Messages::new(&bytes) {
            walk(message.attributes(4), 0);
        }
        walk(Attributes::new(&bytes), 0);
        attribute_path(&bytes, random.usize(..40), random.usize(..220));
    }
}

fn walk(attributes: Attributes<'_>, depth: usize) {
    for attribute in attributes {
        let _ = (attribute.text(), attribute.u16_be(), attribute.u32(), attribute.u64_be());
        if depth < 5 {
            walk(attribute.nested(), depth + 1);
        }
    }
}

#[test]
fn no_refusal_does_harm() {
    let sent = {
        let mut w = Writer::new();
        w.begin(0x0a00, 0, 7, &[2, 0, 0, 0]);
        w.nest(3, |w| w.u32_be(1, 1));
        w.end();
        w.as_bytes().to_vec()
    };
    let answer = |capped: u16| {
        let mut w = Writer::new();
        let mut head = (-22i32).to_ne_bytes().to_vec();
        head.extend_from_slice(&sent[..16]);
        w.begin(2, capped, 7, &head);
        w.text(1, "why");
        w.u32(2, 24);
        w.end();
        w.as_bytes().to_vec()
    };
    let good = [answer(0x100), answer(0)];
    hostile::check(&[&good[0], &good[1]], |message| matches!(refusal("a test", &sent, message), Ok(Some(_))));
}
