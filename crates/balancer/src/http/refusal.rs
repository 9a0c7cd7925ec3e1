//! What a client is told when its request is not passed on, or not answered: a status, and why in a few words.

/// A status with the reason for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// The status of the answer.
    pub status: u16,
    /// Why, without anything that was sent or that is behind us.
    pub why: &'static str,
}

impl Refusal {
    const fn bad(why: &'static str) -> Refusal {
        Refusal { status: 400, why }
    }

    pub(crate) const MALFORMED: Refusal = Refusal::bad("the request cannot be read");
    pub(crate) const LINES: Refusal = Refusal::bad("a line does not end with CR and LF");
    pub(crate) const TARGET: Refusal = Refusal::bad("the target is not one a server has");
    pub(crate) const HOST: Refusal = Refusal::bad("there must be one valid Host");
    pub(crate) const TWO_FRAMINGS: Refusal = Refusal::bad("Content-Length and Transfer-Encoding exclude each other");
    pub(crate) const LENGTH: Refusal = Refusal::bad("Content-Length is not one number");
    pub(crate) const ENCODING: Refusal = Refusal::bad("Transfer-Encoding is not chunked");
    pub(crate) const CHUNKS: Refusal = Refusal::bad("the chunks cannot be read");
    pub(crate) const UNWANTED_BODY: Refusal = Refusal::bad("this method has no body");
    pub(crate) const BODY_LENGTH: Refusal = Refusal::bad("the body is not as long as Content-Length says");
    pub(crate) const FIELD: Refusal = Refusal::bad("a field cannot be passed on");
    pub(crate) const CONNECT: Refusal = Refusal { status: 405, why: "tunnels are not allowed here" };
    pub(crate) const SLOW: Refusal = Refusal { status: 408, why: "the request did not come in time" };
    pub(crate) const BODY: Refusal = Refusal { status: 413, why: "the body is larger than allowed" };
    pub(crate) const LONG_TARGET: Refusal = Refusal { status: 414, why: "the target is longer than allowed" };
    pub(crate) const EXPECT: Refusal = Refusal { status: 417, why: "only 100-continue can be expected" };
    pub(crate) const FIELDS: Refusal = Refusal { status: 431, why: "the fields are more or longer than allowed" };
    pub(crate) const PROTOCOL: Refusal = Refusal { status: 501, why: "only WebSockets are made of streams" };
    pub(crate) const NO_TUNNEL: Refusal = Refusal { status: 501, why: "the backend makes nothing else of its streams" };
    pub(crate) const UNREACHABLE: Refusal = Refusal { status: 502, why: "the backend cannot be reached" };
    pub(crate) const BROKE_OFF: Refusal = Refusal { status: 502, why: "the backend broke off before it answered" };
    pub(crate) const ANSWER: Refusal = Refusal { status: 502, why: "the backend's answer cannot be read" };
    pub(crate) const NOBODY: Refusal = Refusal { status: 503, why: "there is no backend" };
    pub(crate) const FULL: Refusal = Refusal { status: 503, why: "the load balancer has no room for another request" };
    pub(crate) const BUSY: Refusal = Refusal { status: 503, why: "no connection to a backend became free in time" };
    pub(crate) const INTERIM: Refusal = Refusal { status: 502, why: "the backend sent too many interim answers" };
    pub(crate) const LATE: Refusal = Refusal { status: 504, why: "the backend did not answer in time" };
    pub(crate) const VERSION: Refusal = Refusal { status: 505, why: "only versions 1.0, 1.1 and 2 are spoken" };

    /// The phrase that goes with the status.
    pub fn phrase(&self) -> &'static str {
        ::http::StatusCode::from_u16(self.status).ok().and_then(|status| status.canonical_reason()).unwrap_or("Refused")
    }

    /// What is said in the body.
    pub fn body(&self) -> String {
        format!("{} {}: {}\n", self.status, self.phrase(), self.why)
    }

    /// The whole answer in HTTP/1.1; without its body for HEAD. The connection ends with it or goes on.
    pub fn answer(&self, head_only: bool, goes_on: bool) -> Vec<u8> {
        let (body, phrase) = (self.body(), self.phrase());
        // A 405 names what is allowed instead (RFC 9110, 15.5.6): here all that is no tunnel.
        let allowed = if self.status == 405 { "Allow: DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT\r\n" } else { "" };
        let end = if goes_on { "" } else { "Connection: close\r\n" };
        let mut text = format!(
            "HTTP/1.1 {} {phrase}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n{allowed}{end}\r\n",
            self.status,
            body.len()
        );
        if !head_only {
            text.push_str(&body);
        }
        text.into_bytes()
    }
}
