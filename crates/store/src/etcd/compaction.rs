//! Keeps etcd from keeping every revision for ever, in step with kube-apiservers on the same etcd.
//!
//! All who compact share the key `compact_rev_key`: in each round the first to find it unchanged since the last round
//! writes it anew and compacts to the revision of that last round. So everybody gets a whole round to catch up.

use std::time::Duration;

use bytes::Bytes;

use super::client::Repeat;
use super::keys::revision;
use super::messages::{
    CompactionRequest, CompactionResponse, Compare, CompareTarget, CompareValue, PutRequest, RangeRequest, Request,
    RequestOp, Response, TxnRequest, TxnResponse,
};
use super::{Etcd, TXN, unavailable};
use crate::{Error, Revision};

const KEY: &[u8] = b"compact_rev_key";

/// What the last round left behind.
#[derive(Debug, Default, Clone, Copy)]
struct Round {
    version: i64,
    revision: i64,
}

impl Etcd {
    /// Compacts in rounds of this length (kube-apiserver takes five minutes); never returns.
    pub async fn compact_every(&self, interval: Duration) {
        let mut round = Round::default();
        loop {
            tokio::time::sleep(interval).await;
            match self.round(round).await {
                Ok(next) => round = next,
                Err(error) => tracing::warn!(%error, "etcd was not compacted"),
            }
        }
    }

    /// Forgets everything before a revision.
    pub async fn compact(&self, before: Revision) -> Result<(), Error> {
        let request = CompactionRequest { revision: super::keys::wire(before) };
        let path = "/etcdserverpb.KV/Compact";
        match self.shared.client.call::<_, CompactionResponse>(path, &request, Repeat::Always).await {
            // Somebody else was faster.
            Err(status) if status.message().contains("has been compacted") => Ok(()),
            Err(status) => Err(unavailable(&status)),
            Ok(_) => {
                self.shared.note_compacted(before);
                Ok(())
            }
        }
    }

    async fn round(&self, last: Round) -> Result<Round, Error> {
        let now = self.shared.revision().await?;
        let answer: TxnResponse = self
            .shared
            .client
            .call(TXN, &claim(last.version, now), Repeat::IfUnsent)
            .await
            .map_err(|status| unavailable(&status))?;
        if answer.succeeded {
            if last.revision > 0 {
                self.compact(revision(last.revision)).await?;
            }
            let now = answer.header.map_or(last.revision, |header| header.revision);
            return Ok(Round { version: last.version + 1, revision: now });
        }
        let found = answer.responses.into_iter().find_map(|op| match op.response {
            Some(Response::Range(range)) => range.kvs.into_iter().next(),
            None => None,
        });
        let now = answer.header.map_or(0, |header| header.revision);
        Ok(found.map_or(Round::default(), |kv| Round { version: kv.version, revision: now }))
    }
}

/// Takes this round if nobody has taken it.
fn claim(version: i64, now: Revision) -> TxnRequest {
    let key = Bytes::from_static(KEY);
    let put = PutRequest { key: key.clone(), value: now.to_string().into(), lease: 0 };
    let get = RangeRequest { key: key.clone(), ..RangeRequest::default() };
    TxnRequest {
        compare: vec![Compare {
            result: 0,
            target: CompareTarget::Version as i32,
            key,
            value: Some(CompareValue::Version(version)),
        }],
        success: vec![RequestOp { request: Some(Request::Put(put)) }],
        failure: vec![RequestOp { request: Some(Request::Range(get)) }],
    }
}
