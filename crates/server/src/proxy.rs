//! `services/NAME/proxy`: passes a request on to an endpoint of a Service, but only to one that is a Pod. It must never
//! become a way to reach an arbitrary address through the API server.

use bytes::Bytes;
use fairlead_api::Failure;
use http::Response;
use http::request::Parts;

use crate::reply::Body;
use crate::route::Target;
use crate::{Inner, read};

/// Passes a request on.
pub(crate) async fn proxy<B>(
    server: &Inner,
    target: &Target,
    _parts: &Parts,
    _body: B,
) -> Result<Response<Body>, Failure>
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    read::find(&*server.store, target).await?;
    Err(Failure::new(503, "ServiceUnavailable", format!("no endpoints available for service \"{}\"", target.name)))
}
