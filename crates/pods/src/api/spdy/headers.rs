//! Header blocks: names and values, packed by zlib with a dictionary both sides know. One packing runs through all blocks of a
//! connection, so every block must be read, also one nobody is interested in.

use std::sync::LazyLock;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use super::{Broken, Headers};

/// The most a block may be when it is unpacked.
const MAX_BLOCK: usize = 64 << 10;
/// The most headers of a stream.
const MAX_HEADERS: u32 = 100;

/// The words of SPDY/3's dictionary, each behind its length in four bytes.
const WORDS: &str = "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age \
    allow authorization cache-control connection content-base content-encoding content-language content-length \
    content-location content-md5 content-range content-type date etag expect expires from host if-match if-modified-since \
    if-none-match if-range if-unmodified-since last-modified location max-forwards pragma proxy-authenticate \
    proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade user-agent vary via warning \
    www-authenticate method get status 200_OK version HTTP/1.1 url public set-cookie keep-alive origin";

/// What follows the words.
const TAIL: &str = "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 \
    Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not \
    Found500 Internal Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec \
    00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,\
    application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,\
    utf-,*,enq=0.";

static DICTIONARY: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut dictionary = Vec::new();
    for word in WORDS.split_whitespace() {
        dictionary.put_u32(u32::try_from(word.len()).expect("a word is short"));
        dictionary.extend(word.bytes().map(|byte| if byte == b'_' { b' ' } else { byte }));
    }
    dictionary.extend_from_slice(TAIL.as_bytes());
    dictionary
});

/// Unpacks the blocks of a connection.
#[derive(Debug)]
pub(super) struct Unpacker {
    state: Decompress,
}

impl Unpacker {
    pub(super) fn new() -> Unpacker {
        Unpacker { state: Decompress::new(true) }
    }

    pub(super) fn unpack(&mut self, block: &[u8]) -> Result<Headers, Broken> {
        let mut plain = vec![0; MAX_BLOCK];
        let (read_before, made_before) = (self.state.total_in(), self.state.total_out());
        loop {
            let read = usize::try_from(self.state.total_in() - read_before).map_err(|_| Broken::Headers)?;
            let made = usize::try_from(self.state.total_out() - made_before).map_err(|_| Broken::Headers)?;
            if read == block.len() {
                return parse(&plain[..made]);
            }
            if made == MAX_BLOCK {
                return Err(Broken::Headers);
            }
            match self.state.decompress(&block[read..], &mut plain[made..], FlushDecompress::Sync) {
                Ok(Status::Ok) => {}
                Ok(Status::BufError | Status::StreamEnd) => return Err(Broken::Headers),
                Err(error) if error.needs_dictionary().is_some() => {
                    self.state.set_dictionary(&DICTIONARY).map_err(|_| Broken::Headers)?;
                }
                Err(_) => return Err(Broken::Headers),
            }
        }
    }
}

fn parse(plain: &[u8]) -> Result<Headers, Broken> {
    let mut plain = plain;
    let text = |plain: &mut &[u8]| {
        let length = plain.try_get_u32().map_err(|_| Broken::Headers)? as usize;
        if length > plain.len() {
            return Err(Broken::Headers);
        }
        let (text, rest) = plain.split_at(length);
        *plain = rest;
        Ok(String::from_utf8_lossy(text).into_owned())
    };
    let count = plain.try_get_u32().map_err(|_| Broken::Headers)?;
    if count > MAX_HEADERS {
        return Err(Broken::Headers);
    }
    (0..count).map(|_| Ok((text(&mut plain)?.to_lowercase(), text(&mut plain)?))).collect()
}

/// Packs the blocks of a connection.
#[derive(Debug)]
pub(super) struct Packer {
    state: Compress,
}

impl Packer {
    pub(super) fn new() -> Packer {
        let mut state = Compress::new(Compression::fast(), true);
        state.set_dictionary(&DICTIONARY).expect("nothing was packed yet");
        Packer { state }
    }

    pub(super) fn pack(&mut self, headers: &[(String, String)]) -> Bytes {
        let mut plain = BytesMut::new();
        let length = |out: &mut BytesMut, length: usize| out.put_u32(u32::try_from(length).unwrap_or_default());
        length(&mut plain, headers.len());
        for text in headers.iter().flat_map(|(name, value)| [name, value]) {
            length(&mut plain, text.len());
            plain.put_slice(text.as_bytes());
        }
        // Room for what cannot be packed, and for zlib's own marks.
        let mut block = Vec::with_capacity(plain.len() * 2 + 256);
        let packed = self.state.compress_vec(&plain, &mut block, FlushCompress::Sync);
        debug_assert!(matches!(packed, Ok(Status::Ok)));
        block.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dictionary_is_the_one_every_peer_has() {
        // Adler-32, by which zlib names a dictionary.
        let (low, high) = DICTIONARY.iter().fold((1u32, 0u32), |(low, high), byte| {
            let low = (low + u32::from(*byte)) % 65521;
            (low, (high + low) % 65521)
        });
        assert_eq!((DICTIONARY.len(), (high << 16) | low), (1423, 0xe3c6_a7c2));
    }

    #[test]
    fn a_block_that_unpacks_to_too_much_is_refused() {
        let mut packer = Packer::new();
        let bomb = packer.pack(&[("a".to_owned(), "x".repeat(2 * MAX_BLOCK))]);
        assert!(bomb.len() < 2048);
        assert_eq!(Unpacker::new().unpack(&bomb), Err(Broken::Headers));
    }
}
