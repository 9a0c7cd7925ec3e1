//! What the node proxy shows of itself: metrics, its mode, its configuration, its options, how long it runs and what it changed
//! in the kernel's parameters.

use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use http::StatusCode;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use http_body_util::Full;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::health;
use crate::http::{self as server, Answer, Question, answer, not_found};
use crate::metrics::{Format, Metrics};
use crate::sysctls::Change;
use crate::{Error, Mode};

#[cfg(test)]
mod tests;

/// What was configured, for people who look.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pages {
    /// A KubeProxyConfiguration, for `/configz`.
    pub configuration: Value,
    /// Every option and its value, by name, for `/flagz`.
    pub flags: Vec<(String, String)>,
}

/// All that is shown. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Status {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    mode: Mode,
    pages: Pages,
    metrics: Metrics,
    started: (Instant, Timestamp),
    parameters: Mutex<Vec<Change>>,
}

impl Status {
    /// Of a proxy that runs in this mode, from now on.
    pub fn new(mode: Mode, pages: Pages, metrics: Metrics) -> Status {
        let started = (Instant::now(), Timestamp::now());
        let pages = Pages { configuration: in_mode(pages.configuration, mode), ..pages };
        Status { shared: Arc::new(Shared { mode, pages, metrics, started, parameters: Mutex::default() }) }
    }

    /// Kernel parameters were set, or could not be.
    pub fn parameters(&self, changes: Vec<Change>) {
        *self.shared.parameters.lock().unwrap_or_else(PoisonError::into_inner) = changes;
    }

    async fn answer(&self, question: Question) -> Answer {
        match question.path.as_str() {
            "/metrics" => self.metrics(&question).await,
            "/proxyMode" => answer(StatusCode::OK, TEXT, self.shared.mode.as_str()),
            "/healthz" => answer(StatusCode::OK, TEXT, "ok"),
            "/configz" => {
                let body = json!({"kubeproxy.config.k8s.io": self.shared.pages.configuration});
                answer(StatusCode::OK, "application/json", body.to_string())
            }
            "/flagz" => answer(StatusCode::OK, TEXT, self.flags()),
            "/statusz" => answer(StatusCode::OK, TEXT, self.status()),
            _ => not_found(),
        }
    }

    /// Counters are fetched from the kernel, which may take a while.
    async fn metrics(&self, question: &Question) -> Answer {
        let accept = question.headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
        let (format, metrics) = (Format::wanted(accept), self.shared.metrics.clone());
        let Ok(text) = tokio::task::spawn_blocking(move || metrics.text(format)).await else {
            return answer(StatusCode::INTERNAL_SERVER_ERROR, TEXT, "the metrics cannot be written\n");
        };
        let mut answer = Answer::new(Full::new(Bytes::from(text)));
        answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(format.media()));
        answer
    }

    fn flags(&self) -> String {
        let mut page = heading("flagz");
        for (name, value) in &self.shared.pages.flags {
            let _ = writeln!(page, "{name}: {value}");
        }
        page
    }

    fn status(&self) -> String {
        let (since, started) = self.shared.started;
        let up = since.elapsed().as_secs();
        let mut page = heading("statusz");
        let _ = writeln!(page, "\nStarted:  {}", started.strftime("%a %b %e %H:%M:%S UTC %Y"));
        let _ = writeln!(page, "Up:  {} hr {:02} min {:02} sec", up / 3600, up / 60 % 60, up % 60);
        let _ = writeln!(page, "Binary version:  {}", env!("CARGO_PKG_VERSION"));
        let _ = writeln!(page, "Emulation version:  1.36");
        let _ = writeln!(page, "Paths:  /configz /flagz /healthz /metrics /proxyMode");
        let parameters = self.shared.parameters.lock().unwrap_or_else(PoisonError::into_inner);
        if !parameters.is_empty() {
            let _ = writeln!(page, "\nKernel parameters:");
        }
        for change in parameters.iter() {
            let _ = writeln!(page, "{change}");
        }
        page
    }
}

const TEXT: &str = "text/plain; charset=utf-8";

fn heading(page: &str) -> String {
    format!(
        "\nfairlead-proxy {page}\nWarning: This endpoint is not meant to be machine parseable, has no formatting compatibility \
         guarantees and is for debugging purposes only.\n"
    )
}

/// What was configured, with what follows from the mode that was chosen.
fn in_mode(mut configuration: Value, mode: Mode) -> Value {
    if let Some(fields) = configuration.as_object_mut() {
        fields.insert("mode".to_owned(), mode.as_str().into());
        if mode == Mode::Nftables && fields.get("nodePortAddresses").is_none_or(Value::is_null) {
            fields.insert("nodePortAddresses".to_owned(), json!(["primary"]));
        }
    }
    configuration
}

/// Answers at an address until told to stop. Fails only if it cannot be had and that is to be the end.
pub async fn serve(status: Status, address: SocketAddr, hard_fail: bool, stop: CancellationToken) -> Result<(), Error> {
    let Some(listener) = health::bind("metrics", address, hard_fail, &stop).await? else { return Ok(()) };
    let reply = move |question: Question| {
        let status = status.clone();
        async move { status.answer(question).await }
    };
    server::serve(listener, stop, reply).await;
    Ok(())
}
