//! Subresource `scale`: the count of an object's Pods, read and written as a Scale. A write changes
//! the object itself, by the rules of the object, so that two writers of the count and of the rest
//! see each other.

use fairlead_api::kinds::{self, SCALE, Subresource, scale};
use fairlead_api::status::Subject;
use fairlead_api::value::Value;
use fairlead_api::{Failure, Kind, Look, Settings};

use crate::reply::{Payload, Reply};
use crate::route::Target;

/// The name of the subresource.
pub(crate) const NAME: &str = "scale";

/// The kind that a request to a target sends and gets: Scale for the subresource, else the target's
/// own.
pub(crate) fn kind_of(target: &Target) -> &'static Kind {
    if is_scale(target) { &SCALE } else { target.kind }
}

/// True if a target is the subresource of a kind that has it.
pub(crate) fn is_scale(target: &Target) -> bool {
    target.subresource == NAME && target.kind.subresources.contains(&Subresource::Scale)
}

/// Returns the Scale of a stored object, with the managedFields that a write begins with.
pub(crate) fn load(live: &Value) -> Result<Value, Failure> {
    let mut loaded = scale::of_object(live)?;
    let managers = scale::managed_fields(live);
    if !managers.is_empty() {
        loaded.map_mut("metadata").insert("managedFields", managers.into());
    }
    Ok(loaded)
}

/// Returns the stored object with what a Scale says of it.
pub(crate) fn save(target: &Target, live: &Value, new: &Value, settings: &Settings) -> Result<Value, Failure> {
    let errors = (SCALE.rules.validate)(new, None, settings);
    let name = target.name.as_str();
    if !errors.is_empty() {
        return Err(Failure::invalid(Subject { group: SCALE.group, kind: SCALE.kind, name }, &errors));
    }
    let (uid, stored) = (new.at("metadata").text("uid"), live.at("metadata").text("uid"));
    if !uid.is_empty() && uid != stored {
        let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {stored}");
        return Err(Failure::conflict(crate::read::subject(target), &why));
    }
    let mut object = live.clone();
    scale::store(target.kind, &mut object, new);
    Ok(object)
}

/// Turns the object of an answer into its Scale.
pub(crate) fn reply(reply: Reply) -> Result<Reply, Failure> {
    let Payload::Object(_, text) = &reply.payload else { return Ok(reply) };
    let object: Value = serde_json::from_slice(text)
        .map_err(|error| Failure::internal(format!("a stored object cannot be read: {error}")))?;
    let mut scale = kinds::scale::of_object(&object)?;
    SCALE.schema.arrange(&mut scale);
    Ok(Reply::object(reply.code, &SCALE, serde_json::to_vec(&scale).unwrap_or_default().into()))
}
