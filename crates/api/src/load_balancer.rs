//! Annotations of load balancers that more than one part has to know: those that say which certificates a load balancer shows.

use std::collections::{BTreeMap, BTreeSet};

#[cfg(test)]
mod tests;

/// The certificates clients see, by ARN or name, with commas between them.
pub const SSL_CERT: &str = "service.beta.kubernetes.io/aws-load-balancer-ssl-cert";
/// What annotations of a Service said when they last made sense: the text of [`write()`]. Its load balancer goes by that as long as they do
/// not, whoever serves it and whenever that was started.
pub const LAST_GOOD: &str = "fairlead.dev/last-good";

/// Annotations by their names.
pub type Annotations = BTreeMap<String, String>;

/// More is not kept: the annotations of an object may have 256 KiB together, and these are there twice.
const LONGEST: usize = 64 << 10;

/// The text of [`LAST_GOOD`] for annotations; `None`: there are none, or too many.
pub fn write(annotations: &Annotations) -> Option<String> {
    let text = serde_json::to_string(annotations).ok().filter(|text| text.len() <= LONGEST);
    text.filter(|_| !annotations.is_empty())
}

/// The annotations that a text of [`LAST_GOOD`] is of; `None`: it makes no sense.
pub fn read(text: &str) -> Option<Annotations> {
    serde_json::from_str(text).ok().filter(|_| text.len() <= LONGEST)
}

/// The names of the certificates that a load balancer shows, or showed when its annotations last made sense.
pub fn certificates<'a>(annotation: impl Fn(&str) -> Option<&'a str>) -> BTreeSet<String> {
    let good = annotation(LAST_GOOD).and_then(read);
    let good = good.as_ref().and_then(|all| all.get(SSL_CERT)).map(String::as_str);
    let texts = annotation(SSL_CERT).into_iter().chain(good);
    let names = texts.flat_map(|text| text.split(',')).map(str::trim).filter(|name| !name.is_empty());
    names.map(str::to_owned).collect()
}
