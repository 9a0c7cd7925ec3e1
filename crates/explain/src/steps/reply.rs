//! Is a packet that was really sent answered?

use super::{Case, Draft, remedy};
use crate::{Cause, Live, Reply};

pub(super) fn look(case: &Case<'_>) -> Draft {
    let Some(live) = &case.evidence.live else { return Draft::skipped("no packet was sent (--live sends one)") };
    let mut draft = Draft::default();
    let Live { to, endpoint, reply, .. } = live;
    let by = endpoint.map(|endpoint| format!(" by {endpoint}")).unwrap_or_default();
    let at = endpoint.map(|endpoint| format!(" at {endpoint}")).unwrap_or_default();
    let trace = format!("fairlead trace --live --from node --to {}", remedy::quote(to));
    let logs = match case.pods.first() {
        Some(pod) => {
            let meta = &pod.view.metadata;
            format!(
                "kubectl logs {}",
                remedy::named(&fairlead_api::source::Key::new(meta.namespace.as_str(), meta.name.as_str()))
            )
        }
        None => case.show(),
    };
    match reply {
        Reply::Answered => draft.see(format!("a packet to {to} was answered{by}")),
        Reply::Refused => {
            let message = format!("a packet to {to} was refused{at}: nothing accepts connections there");
            draft.broken(Cause::ConnectionRefused, message, vec![trace, logs]);
        }
        Reply::Nothing if to.ends_with("/UDP") => {
            draft.see(format!("a packet to {to} was sent; nothing came back, which is fine for UDP"))
        }
        Reply::Nothing => {
            let message = format!("nothing came back for a packet to {to}{at}: it or its answer was lost on the way");
            draft.broken(Cause::NoReply, message, vec![trace, logs]);
        }
        Reply::Failed(why) => {
            let message = format!("a packet to {to} could not be sent: {why}");
            draft.broken(Cause::SendFailed, message, vec!["ip route".to_owned(), trace]);
        }
    }
    draft
}
