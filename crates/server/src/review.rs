//! Questions that are posted and answered, not stored: who am I, may I, is this token good.

use fairlead_api::Failure;

use crate::Inner;
use crate::reply::Reply;
use crate::route::Target;

/// Answers a review.
pub(crate) async fn review(_server: &Inner, _target: &Target, _bytes: &[u8], _media: &str) -> Result<Reply, Failure> {
    Err(crate::not_allowed())
}
