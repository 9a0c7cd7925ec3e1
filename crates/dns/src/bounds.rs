//! Bounds of what clients can make a server hold: connections, questions that wait for others,
//! answers on their way, sockets to upstreams.

use std::net::IpAddr;

use fairlead_runtime::{Account, AtLimit, Budget, Limits, SlotTable};

/// Maximum number of TCP connections of clients, where descriptors allow it.
const CONNECTIONS: u64 = 2048;
/// Maximum number of questions that wait for others, where descriptors allow it. Each takes a few
/// kilobytes.
const QUESTIONS: u64 = 10_000;
/// Part of the connections, or of the waiting questions, that one client may hold.
const CLIENT_PART: u64 = 8;
/// Minimum share of one client, where the total allows it: a resolver asks for a few names at a
/// time.
const LEAST_SHARE: u64 = 16;
/// Maximum number of bytes in long answers that clients on TCP have not taken yet, where memory
/// allows it.
const ANSWER_BYTES: u64 = 32 << 20;

/// Bounds shared by all listeners and server blocks of a process. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Bounds {
    /// TCP connections of clients.
    pub(crate) connections: SlotTable,
    /// Questions that wait for others.
    pub(crate) questions: SlotTable,
    /// Bytes of long answers to clients on TCP.
    pub(crate) answers: Budget,
    /// Sockets to upstreams.
    pub(crate) sockets: Budget,
}

impl Bounds {
    /// Derives the bounds from the limits of the process: connections and sockets together use at
    /// most a quarter of the descriptors that clients may use.
    pub(crate) fn new(account: &Account) -> Bounds {
        let machine = account.machine();
        let descriptors = machine.client_descriptors() / 4;
        let connections = (descriptors / 4).min(CONNECTIONS);
        // Idle connections to upstreams and health checks hold sockets beside those of questions.
        let sockets = descriptors - connections;
        let questions = (sockets - sockets / 8).min(QUESTIONS);
        let share = |total: u64| Limits { total, per_sender: (total / CLIENT_PART).max(LEAST_SHARE).min(total) };
        let answers = ANSWER_BYTES.min(machine.memory / 32);
        let connections = account.budget("dns connections", share(connections));
        let questions = account.budget("dns waiting questions", share(questions));
        Bounds {
            connections: SlotTable::new(connections, AtLimit::ReplaceIdlest),
            questions: SlotTable::new(questions, AtLimit::Refuse),
            answers: account.budget("dns answer bytes", Limits { total: answers, per_sender: answers / 4 }),
            sockets: account.budget("dns upstream sockets", Limits::total(sockets)),
        }
    }
}

/// Returns the client that bytes of answers are charged to: its very address, because the Pods of a
/// Node share a /64.
pub(crate) fn client(address: IpAddr) -> fairlead_runtime::Sender {
    fairlead_runtime::Sender::Network(address.to_canonical())
}

#[cfg(test)]
mod tests {
    use fairlead_runtime::MachineLimits;

    use super::*;

    #[test]
    fn sockets_and_connections_use_a_quarter_of_the_descriptors_at_most() {
        for descriptors in [0, 64, 1024, 8000, 20_000, 1_048_576, u64::from(u32::MAX)] {
            let account = Account::new(MachineLimits { descriptors, memory: 1 << 30 });
            let bounds = Bounds::new(&account);
            let (connections, questions) = (bounds.connections.limits(), bounds.questions.limits());
            let sockets = bounds.sockets.limits().total;
            assert!(connections.total + sockets <= account.machine().client_descriptors() / 4, "{descriptors}");
            assert!(questions.total <= sockets && questions.total <= QUESTIONS, "{descriptors}");
            for limits in [connections, questions] {
                assert!(limits.per_sender <= limits.total, "{descriptors}");
                // Some hundreds of descriptors are too few to share.
                assert!(descriptors < 2048 || limits.per_sender <= limits.total / 2, "{descriptors}");
            }
        }
    }
}
