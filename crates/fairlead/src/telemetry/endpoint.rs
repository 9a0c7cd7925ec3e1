//! Where is the collector? `http://HOST:PORT[/PATH]`, as OpenTelemetry's own variables have it.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, bail, ensure};

/// The path of traces, where none is said.
const TRACES: &str = "/v1/traces";
/// The port of OTLP over HTTP.
const PORT: u16 = 4318;
/// What a cluster is called that nobody named.
const CLUSTER: &str = "fairlead";

/// Where traces go, and whose they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Endpoint {
    /// `HOST:PORT`
    pub(crate) authority: String,
    pub(crate) path: String,
    /// The name of the cluster: traces of two with one collector must not be taken for the same.
    pub(crate) cluster: String,
}

impl Endpoint {
    /// The same, of a cluster with that name.
    pub(crate) fn of(self, cluster: Option<String>) -> Endpoint {
        Endpoint { cluster: cluster.unwrap_or(self.cluster), ..self }
    }
}

impl FromStr for Endpoint {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Endpoint> {
        let uri: http::Uri = text.parse().with_context(|| format!("{text:?} is no URL: want http://HOST:PORT"))?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => {
                bail!("{text}: collectors are reached by http; run one on this machine that sends on by https")
            }
            _ => bail!("{text:?}: want http://HOST:PORT"),
        }
        let host = uri.host().unwrap_or_default();
        ensure!(!host.is_empty(), "{text:?} names no host: want http://HOST:PORT");
        let path = uri.path().trim_end_matches('/');
        let path = if path.ends_with(TRACES) { path.to_owned() } else { format!("{path}{TRACES}") };
        let authority = format!("{host}:{}", uri.port_u16().unwrap_or(PORT));
        Ok(Endpoint { authority, path, cluster: CLUSTER.to_owned() })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.authority, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_collectors_are_read_and_mistakes_named() {
        let cases = [
            ("http://127.0.0.1:4318", Ok("http://127.0.0.1:4318/v1/traces")),
            ("http://collector", Ok("http://collector:4318/v1/traces")),
            ("http://c:80/otlp/", Ok("http://c:80/otlp/v1/traces")),
            ("http://c:80/v1/traces", Ok("http://c:80/v1/traces")),
            ("http://[::1]:4318", Ok("http://[::1]:4318/v1/traces")),
            ("https://c", Err("sends on by https")),
            ("c:4318", Err("want http://HOST:PORT")),
            ("", Err("is no URL")),
        ];
        for (text, wanted) in cases {
            match (text.parse::<Endpoint>(), wanted) {
                (Ok(found), Ok(wanted)) => assert_eq!(found.to_string(), wanted),
                (Err(error), Err(words)) => assert!(format!("{error:#}").contains(words), "{error:#}"),
                (found, _) => panic!("{text:?}: {found:?}"),
            }
        }
    }
}
