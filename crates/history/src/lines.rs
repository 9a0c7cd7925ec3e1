//! What changed, in lines a person reads: endpoints that joined and left, Pods that became ready, fields that are others now.

use fairlead_api::Look;
use serde_json::Value;

use crate::Followed;

mod endpoints;
mod fields;
mod pods;
mod services;
#[cfg(test)]
mod tests;

pub use endpoints::Port;
pub(crate) use endpoints::{Endpoint, endpoints_of};

/// The most lines one change gets: a slice of a thousand endpoints that goes away is told in few words.
const MOST: usize = 40;

/// Says what changed. `None` is an object that is not there. Both are as [`crate::trim::trim`] leaves them.
pub fn lines(kind: Followed, name: &str, before: Option<&Value>, after: Option<&Value>) -> Vec<String> {
    let lines = match kind {
        Followed::Service => services::lines(before, after),
        Followed::EndpointSlice | Followed::Endpoints => endpoints::lines(kind, before, after),
        Followed::Pod => pods::pod(name, before, after),
        Followed::Node => pods::node(name, before, after),
        Followed::ServiceCidr => ranges(before, after),
        Followed::Event => after.map(event).into_iter().collect(),
    };
    shortened(lines)
}

/// An Event in one line.
fn event(event: &Value) -> String {
    let words = format!("{} {}: {}", event.text("type"), event.text("reason"), event.text("message").trim());
    let line = words.split_whitespace().collect::<Vec<_>>().join(" ");
    match event.int_opt("count") {
        Some(count) => format!("{line} (seen {count} times)"),
        None => line,
    }
}

fn ranges(before: Option<&Value>, after: Option<&Value>) -> Vec<String> {
    match (before, after) {
        (None, Some(after)) => vec![format!("range of cluster IPs: {}", after.at("spec").texts("cidrs").join(", "))],
        (Some(before), Some(after)) => fields::changed(before, after, &[]),
        _ => Vec::new(),
    }
}

fn shortened(mut lines: Vec<String>) -> Vec<String> {
    if lines.len() > MOST {
        let more = lines.len() - (MOST - 1);
        lines.truncate(MOST - 1);
        lines.push(format!("and {more} more"));
    }
    lines
}
