//! PATCH: picks the kind of patch, applies it to the stored object, and hands the result to the write path.

use fairlead_api::managed::{self, Writer};
use fairlead_api::value::Value;
use fairlead_api::{Failure, Kind, Look, Settings, decode, patch};

use crate::options::{FieldValidation, Query, WriteKind, WriteOptions};
use crate::reply::Reply;
use crate::write::{How, Request};
use crate::{body, clock, object, scale, yaml};

/// The four media types of PATCH.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatchType {
    Json,
    Merge,
    Strategic,
    Apply,
}

impl PatchType {
    /// Reads a Content-Type; 415 for anything else.
    pub(crate) fn parse(media: &str) -> Result<PatchType, Failure> {
        match media {
            "application/json-patch+json" => Ok(PatchType::Json),
            "application/merge-patch+json" => Ok(PatchType::Merge),
            "application/strategic-merge-patch+json" => Ok(PatchType::Strategic),
            "application/apply-patch+yaml" => Ok(PatchType::Apply),
            _ => Err(Failure::new(415, "UnsupportedMediaType", "415: Unsupported Media Type")),
        }
    }

    /// How such a patch changes an object.
    pub(crate) fn how(self) -> How {
        if self == PatchType::Apply { How::Apply } else { How::Patch }
    }

    /// The options of such a patch.
    pub(crate) fn options(self, query: &Query, user_agent: &str) -> Result<WriteOptions, Failure> {
        let kind = if self == PatchType::Apply { WriteKind::Apply } else { WriteKind::Patch };
        WriteOptions::parse(query, kind, user_agent)
    }
}

/// Applies a patch.
pub(crate) async fn patch(request: &mut Request<'_>, kind: PatchType, bytes: &[u8]) -> Result<Reply, Failure> {
    if kind == PatchType::Apply {
        return apply(request, bytes).await;
    }
    let (target, options) = (request.target, request.options.clone());
    let settings = &request.server.options.settings;
    let of = scale::kind_of(target);
    let reply = request
        .update(|live, warnings| {
            let Some(live) = live else { return Err(Failure::not_found(crate::read::subject(target))) };
            let scaled = if scale::is_scale(target) { Some(scale::load(live)?) } else { None };
            let seen = object::from_stored(of, scaled.as_ref().unwrap_or(live));
            let patched = match kind {
                PatchType::Json => patch::json(&seen, bytes)?,
                PatchType::Merge => patch::merge(&seen, bytes)?,
                _ => patch::strategic(of.schema, &seen, bytes)?,
            };
            let (new, notes) = decode_patched(of, patched, options.field_validation, settings)?;
            let mut new = object::to_stored(of, new);
            warnings.extend(notes);
            (of.rules.default)(&mut new, settings);
            let (api_version, now) = (of.api_version(), clock::now());
            let writer = Writer {
                manager: &options.field_manager,
                api_version: &api_version,
                subresource: &target.subresource,
                now: &now,
            };
            managed::update(object::stored(of).schema, Some(scaled.as_ref().unwrap_or(live)), &mut new, writer);
            check_name(&new, &target.name)?;
            if scaled.is_some() { scale::save(target, live, &new, settings) } else { Ok(new) }
        })
        .await?;
    if scale::is_scale(target) { scale::reply(reply) } else { Ok(reply) }
}

/// The patched object must still be one of its kind; if not, the patch is to blame, not the object. With the object come
/// the warnings.
fn decode_patched(
    kind: &'static Kind,
    mut patched: patch::Patched,
    validation: FieldValidation,
    settings: &Settings,
) -> Result<(Value, Vec<String>), Failure> {
    body::check_kind(&patched.value, &body::Expected::object(kind))
        .map_err(|failure| patched.undecodable(&failure.message))?;
    let decoded = decode::decode_gated(kind.schema, patched.value.clone(), &|gate| settings.allows(gate))
        .map_err(|mismatch| patched.undecodable(&mismatch.to_string()))?;
    let mut unknown: Vec<String> = decoded.unknown.iter().map(|path| format!("unknown field \"{path}\"")).collect();
    unknown.sort();
    let mut notes = std::mem::take(&mut patched.doubts);
    notes.extend(unknown);
    match validation {
        FieldValidation::Strict if !notes.is_empty() => {
            return Err(patched.undecodable(&format!("strict decoding error: {}", notes.join(", "))));
        }
        FieldValidation::Ignore => notes.clear(),
        _ => {}
    }
    let mut value = decoded.value;
    body::set_type(&mut value, &body::Expected::object(kind));
    managed::keep_reset(&patched.value, &mut value);
    Ok((value, notes))
}

/// Server-side apply.
async fn apply(request: &mut Request<'_>, bytes: &[u8]) -> Result<Reply, Failure> {
    let of = scale::kind_of(request.target);
    let config = parse_config(bytes)?;
    check_config(&config, of)?;
    let (target, options) = (request.target, request.options.clone());
    let settings = &request.server.options.settings;
    let reply = request
        .update(|live, _| {
            let scaled = match (scale::is_scale(target), live) {
                (true, Some(live)) => Some((live, scale::load(live)?)),
                (true, None) => return Err(Failure::not_found(crate::read::subject(target))),
                (false, _) => None,
            };
            let (api_version, now) = (of.api_version(), clock::now());
            let writer = Writer {
                manager: &options.field_manager,
                api_version: &api_version,
                subresource: &target.subresource,
                now: &now,
            };
            let seen = match &scaled {
                Some((_, scale)) => Some(scale.clone()),
                None => live.map(|live| object::from_stored(of, live)),
            };
            let merged = managed::apply(of.schema, seen.as_ref(), &config, options.force, writer)?;
            let decoded = decode::decode_gated(of.schema, merged, &|gate| settings.allows(gate))
                .map_err(|mismatch| Failure::new(500, "", mismatch.to_string()))?;
            let mut new = decoded.value;
            body::set_type(&mut new, &body::Expected::object(of));
            let mut new = object::to_stored(of, new);
            (of.rules.default)(&mut new, settings);
            check_name(&new, &target.name)?;
            match scaled {
                Some((live, _)) => scale::save(target, live, &new, settings),
                None => Ok(new),
            }
        })
        .await?;
    if scale::is_scale(target) { scale::reply(reply) } else { Ok(reply) }
}

fn parse_config(bytes: &[u8]) -> Result<Value, Failure> {
    let decoding = |why: String| Failure::bad_request(format!("error decoding YAML: {why}"));
    let parsed = yaml::parse(bytes).map_err(|why| decoding(format!("error converting YAML to JSON: yaml: {why}")))?;
    match parsed.value {
        Value::Null => Ok(Value::Object(fairlead_api::value::Map::new())),
        value @ Value::Object(_) => Ok(value),
        other => Err(decoding(format!(
            "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            body::json_type(&other)
        ))),
    }
}

/// An apply configuration must say what it is.
fn check_config(config: &Value, kind: &Kind) -> Result<(), Failure> {
    let (api_version, named) = (config.text("apiVersion"), config.text("kind"));
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    if api_version.is_empty() || named.is_empty() {
        return Err(Failure::bad_request(format!("invalid object type: {group}/{version}, Kind={named}")));
    }
    if (api_version, named) != (kind.api_version().as_str(), kind.kind) {
        let expected = kind.api_version();
        return Err(Failure::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({expected})"
        )));
    }
    Ok(())
}

/// The name in an object is the one in the URL.
pub(crate) fn check_name(object: &Value, name: &str) -> Result<(), Failure> {
    let given = object.at("metadata").text("name");
    if given.is_empty() {
        return Err(Failure::bad_request(format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        )));
    }
    if given != name {
        return Err(Failure::bad_request(format!(
            "the name of the object ({given}) does not match the name on the URL ({name})"
        )));
    }
    Ok(())
}
