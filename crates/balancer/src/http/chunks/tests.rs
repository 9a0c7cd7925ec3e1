use super::*;

/// The data of a body, its trailers, and how many bytes of the text it has.
fn read(text: &[u8], at_once: usize) -> Result<(Vec<u8>, Vec<u8>, usize, bool), Malformed> {
    let (mut chunks, mut data, mut trailers, mut taken) = (Chunks::default(), Vec::new(), Vec::new(), 0);
    while taken < text.len() {
        let rest = &text[taken..(taken + at_once).min(text.len())];
        match chunks.step(rest)? {
            Piece::Framing(n) => taken += n,
            Piece::Data(n) => {
                data.extend_from_slice(&rest[..n]);
                taken += n;
            }
            Piece::Trailer(n) => {
                trailers.extend_from_slice(&rest[..n]);
                taken += n;
            }
            Piece::End => break,
        }
    }
    Ok((data, trailers, taken, chunks.done()))
}

fn check(text: &str, expected: Result<(&str, &str, usize, bool), Malformed>) {
    let expected = expected.map(|(data, trailers, taken, done)| (data.into(), trailers.into(), taken, done));
    for at_once in [1, 2, 3, 7, 4096] {
        assert_eq!(read(text.as_bytes(), at_once), expected, "{text:?} {at_once} at once");
    }
}

#[test]
fn a_body_ends_after_its_last_chunk() {
    check("0\r\n\r\n", Ok(("", "\r\n", 5, true)));
    check("3\r\nabc\r\n0\r\n\r\nGET /", Ok(("abc", "\r\n", 13, true)));
    check("A\r\n0123456789\r\n1\r\nx\r\n000\r\n\r\n", Ok(("0123456789x", "\r\n", 28, true)));
    check("3\r\nab", Ok(("ab", "", 5, false)));
    check("3;name=value;other=\"x\"\r\nabc\r\n0\r\n\r\n", Ok(("abc", "\r\n", 34, true)));
}

#[test]
fn trailers_are_lines_of_fields() {
    check("0\r\nA: b\r\nC:d\r\n\r\n", Ok(("", "A: b\r\nC:d\r\n\r\n", 16, true)));
    for bad in [
        "0\r\n A: b\r\n\r\n",
        "0\r\nA : b\r\n\r\n",
        "0\r\nA\r\n\r\n",
        "0\r\nA: b\n\r\n",
        "0\r\nA: \0\r\n\r\n",
        "0\r\n\n",
    ] {
        check(bad, Err(Malformed));
    }
}

#[test]
fn what_another_reader_could_read_differently_is_refused() {
    let bad = [
        "\r\n",
        " 3\r\nabc\r\n",
        "3 \r\nabc\r\n",
        "0x3\r\nabc\r\n",
        "+3\r\nabc\r\n",
        "-1\r\n",
        "3\nabc\r\n",
        "3\r\nabcd\r\n",
        "3\r\nabc\n",
        "3\r\nabc0\r\n\r\n",
        "3;a\nb\r\nabc\r\n",
        "3;a\rb\r\nabc\r\n",
        "3;\0\r\nabc\r\n",
        ";a\r\n",
        "g\r\n",
        "10000000000000000\r\n",
        "ffffffffffffffff\r\n",
        "00000000000000000000003\r\nabc\r\n",
    ];
    for text in bad {
        check(text, Err(Malformed));
    }
}

#[test]
fn extensions_and_trailers_are_bounded() {
    check(&format!("3;{}\r\nabc\r\n0\r\n\r\n", "a".repeat(300)), Err(Malformed));
    check(&format!("0\r\nA: {}\r\n\r\n", "a".repeat(9000)), Err(Malformed));
}
