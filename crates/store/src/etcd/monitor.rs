//! Checks that the selected member of etcd answers, and selects another one if it does not.
//!
//! A member whose machine is frozen or cut off keeps its connections: nothing breaks, and nothing
//! is answered. HTTP/2 PINGs would show that only after 20 s, and a member that is cut off from the
//! other members answers them. So the monitor sends a small read that needs the majority of the
//! cluster.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tonic::Status;

use super::RANGE;
use super::client::{Client, is_failure};
use super::messages::{RangeRequest, RangeResponse};

/// Time between two checks.
const INTERVAL: Duration = Duration::from_millis(500);

/// Time without an answer after which the other members are asked too. With [`INTERVAL`], a silent
/// member is left after 1 to 1.5 s.
const SILENCE: Duration = Duration::from_secs(1);

/// Checks the selected member in turns; never returns. `check` is a read of one key.
pub(super) async fn run(client: Client, endpoints: Vec<String>, check: RangeRequest) {
    loop {
        tokio::time::sleep(INTERVAL).await;
        let selected = client.selected();
        let Some(member) = answering(&client, selected.member, &check).await else { continue };
        // A member that answers late, but before the others, is slow and not silent: requests under
        // way stay where they are.
        if member == selected.member {
            continue;
        }
        // Requests may have found meanwhile that the member fails, and have gone on.
        if client.selected() != selected {
            continue;
        }
        let (from, to) = (&endpoints[selected.member], &endpoints[member]);
        tracing::warn!("etcd member {from} does not answer; going on with {to}");
        client.select(member);
    }
}

/// Returns the first member that answers if the selected one was silent for [`SILENCE`]; it may be
/// the selected one, late. `None`: the selected member was not silent, or none answers.
async fn answering(client: &Client, selected: usize, check: &RangeRequest) -> Option<usize> {
    let ask = move |member: usize| async move {
        let answer: Result<RangeResponse, _> = client.call_member(member, RANGE, check, client.deadline()).await;
        (member, answer)
    };
    let first = ask(selected);
    tokio::pin!(first);
    if let Ok((_, answer)) = tokio::time::timeout(SILENCE, &mut first).await {
        if let Err(status) = answer {
            client.leave(selected, &status);
        }
        return None;
    }
    // The first request stays under way: after an election of a new leader the same member may be
    // the first to answer.
    let others = (0..client.members()).filter(|member| *member != selected);
    let mut others: FuturesUnordered<_> = others.map(ask).collect();
    let mut first_ended = false;
    loop {
        let (member, answer) = tokio::select! {
            answer = &mut first, if !first_ended => {
                first_ended = true;
                answer
            }
            Some(answer) = others.next() => answer,
            else => return None,
        };
        if usable(&answer) {
            return Some(member);
        }
    }
}

/// Returns whether an answer shows that the member serves requests: a refusal, for want of
/// permissions say, does.
fn usable(answer: &Result<RangeResponse, Status>) -> bool {
    answer.as_ref().err().is_none_or(|status| !is_failure(status))
}
