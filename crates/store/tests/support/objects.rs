//! Objects and transactions for tests.

use fairlead_store::{Backend, Draft, Guard, Outcome, Range, Revision, Txn, Write};

/// A small object that says `text`.
#[allow(dead_code, reason = "some suites only write through `put`")]
pub(crate) fn draft(text: &str) -> Draft {
    let json = format!("{{\"metadata\":{{\"name\":\"x\"}},\"text\":\"{text}\"}}");
    Draft { json: json.into(), gap: "{\"metadata\":{".len() }
}

/// What the store makes of it.
#[allow(dead_code, reason = "not every suite needs it")]
pub(crate) fn stored(text: &str, revision: Revision) -> String {
    format!("{{\"metadata\":{{\"resourceVersion\":\"{revision}\",\"name\":\"x\"}},\"text\":\"{text}\"}}")
}

/// Reads [`draft`]s back.
#[allow(dead_code, reason = "used where etcd is")]
pub(crate) fn decode(_key: &str, value: &[u8]) -> Result<Draft, String> {
    match value.starts_with(b"{\"metadata\":{") {
        true => Ok(Draft { json: value.to_vec().into(), gap: "{\"metadata\":{".len() }),
        false => Err("not an object".into()),
    }
}

/// A put.
#[allow(dead_code, reason = "not every suite needs it")]
pub(crate) fn put(key: &str, text: &str) -> Write {
    Write::Put(key.into(), draft(text))
}

/// A delete.
#[allow(dead_code, reason = "not every suite needs it")]
pub(crate) fn delete(key: &str) -> Write {
    Write::Delete(key.into())
}

/// Writes without conditions.
pub(crate) fn txn(writes: impl Into<Vec<Write>>) -> Txn {
    Txn { guards: Vec::new(), writes: writes.into() }
}

/// Writes that happen only if the guards hold.
#[allow(dead_code, reason = "not every suite has conditions")]
pub(crate) fn guarded(guards: impl Into<Vec<Guard>>, writes: impl Into<Vec<Write>>) -> Txn {
    Txn { guards: guards.into(), writes: writes.into() }
}

/// Commits what cannot be refused.
#[allow(dead_code, reason = "not every suite needs it")]
pub(crate) async fn write(store: &dyn Backend, writes: impl Into<Vec<Write>>) -> Revision {
    match store.commit(txn(writes)).await.expect("the store works") {
        Outcome::Done(revision) => revision,
        Outcome::Refused(guard) => panic!("guard {guard} of none refused"),
    }
}

/// All of a prefix as it is now.
#[allow(dead_code, reason = "not every suite needs it")]
pub(crate) fn all(prefix: &str) -> Range {
    Range { prefix: prefix.into(), ..Range::default() }
}
