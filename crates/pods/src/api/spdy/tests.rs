use proptest::prelude::*;

use super::*;

/// All frames in these bytes, which come in pieces.
pub(crate) fn frames(reader: &mut Reader, bytes: &[u8], piece: usize) -> Result<Vec<Frame>, Broken> {
    let mut frames = Vec::new();
    for part in bytes.chunks(piece.max(1)) {
        reader.push(part);
        while let Some(frame) = reader.next()? {
            frames.push(frame);
        }
    }
    Ok(frames)
}

fn headers(pairs: &[(&str, &str)]) -> Headers {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn what_is_written_is_read_whatever_the_pieces() {
    let sent = vec![
        Frame::Open { stream: 1, headers: headers(&[("streamtype", "error"), ("port", "80")]), fin: false },
        Frame::Open { stream: 3, headers: headers(&[("streamtype", "data"), ("port", "80")]), fin: true },
        Frame::Reply { stream: 1 },
        Frame::Ping(7),
        Frame::Data { stream: 3, data: Bytes::new(), fin: true },
        Frame::Reset { stream: 1, status: reset::CANCEL },
        Frame::Away { last: 3 },
    ];
    for piece in [1, 3, 8, 1000] {
        let (mut writer, mut out) = (Writer::new(), BytesMut::new());
        sent.iter().for_each(|frame| writer.write(frame, &mut out));
        assert_eq!(frames(&mut Reader::new(), &out, piece), Ok(sent.clone()), "pieces of {piece}");
    }
}

#[test]
fn data_is_handed_on_in_the_pieces_it_comes_in() {
    let mut out = BytesMut::new();
    Writer::new().write(&Frame::Data { stream: 5, data: Bytes::from_static(b"abcdef"), fin: true }, &mut out);
    let data = |text: &'static str, fin| Frame::Data { stream: 5, data: Bytes::from_static(text.as_bytes()), fin };
    let got = frames(&mut Reader::new(), &out, 10);
    assert_eq!(got, Ok(vec![data("ab", false), data("cdef", true)]));
}

/// What comes of bytes that are no SPDY.
#[track_caller]
fn check(bytes: &[u8], want: Broken) {
    assert_eq!(frames(&mut Reader::new(), bytes, 1000), Err(want));
}

#[test]
fn bytes_that_are_no_spdy_are_refused() {
    check(b"\x80\x02\x00\x01\x00\x00\x00\x00", Broken::Version(2));
    check(b"\x80\x03\x00\x01\x00\xff\xff\xff", Broken::TooLarge(0xff_ffff));
    check(b"\x80\x03\x00\x03\x00\x00\x00\x02ab", Broken::TooShort);
    check(b"\x80\x03\x00\x01\x00\x00\x00\x0e\0\0\0\x01\0\0\0\0\0\0zzzz", Broken::Headers);
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..2000), piece in 1usize..100) {
        let _ = frames(&mut Reader::new(), &bytes, piece);
    }

    #[test]
    fn a_frame_with_a_spoilt_byte_does_not_make_it_panic(at in 0usize..200, byte: u8) {
        let (mut writer, mut out) = (Writer::new(), BytesMut::new());
        for stream in [1, 3, 5] {
            writer.write(&Frame::Open { stream, headers: headers(&[("port", "80"), ("requestid", "0")]), fin: false }, &mut out);
        }
        let at = at % out.len();
        out[at] = byte;
        let _ = frames(&mut Reader::new(), &out, 50);
    }
}
