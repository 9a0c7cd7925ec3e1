//! The channels of a command in WebSocket messages: the first byte is the channel's number, the rest is data. Pure.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

/// To the command.
pub(crate) const STDIN: u8 = 0;
/// From the command.
pub(crate) const STDOUT: u8 = 1;
/// From the command, too.
pub(crate) const STDERR: u8 = 2;
/// How it ended.
pub(crate) const ERROR: u8 = 3;
/// The size of the terminal.
pub(crate) const RESIZE: u8 = 4;
/// The channel whose number follows is closed.
pub(crate) const CLOSE: u8 = 255;

/// A protocol of exec and attach.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Protocol {
    /// Its name.
    pub(crate) name: &'static str,
    /// Text messages with data in base64, for clients that know no other.
    pub(crate) base64: bool,
    /// The end is told as a Status, with the exit code.
    pub(crate) tells: bool,
    /// Channels can be closed.
    pub(crate) closes: bool,
}

const fn protocol(name: &'static str, base64: bool, tells: bool, closes: bool) -> Protocol {
    Protocol { name, base64, tells, closes }
}

/// All there are; the last is for clients that name none.
static PROTOCOLS: [Protocol; 6] = [
    protocol("v5.channel.k8s.io", false, true, true),
    protocol("v4.channel.k8s.io", false, true, false),
    protocol("v4.base64.channel.k8s.io", true, true, false),
    protocol("channel.k8s.io", false, false, false),
    protocol("base64.channel.k8s.io", true, false, false),
    protocol("", false, false, false),
];

impl Protocol {
    /// The first of a client's that we know.
    pub(crate) fn choose(offered: &[String]) -> Option<&'static Protocol> {
        if offered.is_empty() {
            return PROTOCOLS.last();
        }
        offered.iter().find_map(|name| PROTOCOLS.iter().find(|known| known.name == name))
    }

    /// What may be offered.
    pub(crate) fn names() -> Vec<&'static str> {
        PROTOCOLS.iter().map(|protocol| protocol.name).filter(|name| !name.is_empty()).collect()
    }

    /// A message of a channel.
    pub(crate) fn encode(&self, channel: u8, data: &[u8]) -> Message {
        if self.base64 {
            return Message::text(format!("{}{}", char::from(b'0' + channel), STANDARD.encode(data)));
        }
        Message::binary([&[channel], data].concat())
    }

    /// The channel of a message and what it says; `None`: it says nothing.
    pub(crate) fn decode<'a>(&self, message: &'a Message) -> Option<(u8, Cow<'a, [u8]>)> {
        let bytes: &[u8] = match message {
            Message::Binary(bytes) => bytes,
            Message::Text(text) => text.as_bytes(),
            _ => return None,
        };
        let (channel, data) = bytes.split_first()?;
        if !self.base64 {
            return Some((*channel, data.into()));
        }
        Some((channel.checked_sub(b'0')?, STANDARD.decode(data).ok()?.into()))
    }
}

/// All went as it should.
pub(crate) fn normal() -> CloseFrame {
    CloseFrame { code: CloseCode::Normal, reason: "".into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(offered: &[&str], want: Option<&str>) {
        let offered: Vec<String> = offered.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(Protocol::choose(&offered).map(|protocol| protocol.name), want);
    }

    #[test]
    fn the_clients_first_choice_that_is_known_is_taken() {
        check(&["v5.channel.k8s.io", "v4.channel.k8s.io"], Some("v5.channel.k8s.io"));
        check(&["v9.channel.k8s.io", "v4.channel.k8s.io"], Some("v4.channel.k8s.io"));
        check(&["v9.channel.k8s.io"], None);
        check(&[], Some(""));
    }

    #[test]
    fn messages_are_read_as_they_are_written() {
        for protocol in &PROTOCOLS {
            let message = protocol.encode(STDERR, b"a\0\xff");
            assert_eq!(protocol.decode(&message), Some((STDERR, b"a\0\xff".as_slice().into())), "{}", protocol.name);
            assert_eq!(protocol.decode(&Message::binary(Vec::new())), None);
        }
        assert_eq!(PROTOCOLS[2].encode(STDOUT, b"hi"), Message::text("1aGk="));
        assert_eq!(PROTOCOLS[2].decode(&Message::text("1???")), None);
    }
}
