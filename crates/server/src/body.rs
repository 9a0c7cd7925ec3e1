//! Request bodies: JSON, YAML or protobuf in, a canonical object of the expected kind out.

use fairlead_api::decode::{self, Decoded};
use fairlead_api::schema::Struct;
use fairlead_api::value::Value;
use fairlead_api::{Failure, Kind, Look, Settings, json, kinds, managed, proto};

use crate::options::FieldValidation;

/// The largest body we read; kube-apiserver's own limit.
pub(crate) const MAX_BODY: usize = 3 * 1024 * 1024;

/// A decoded body and what there was to say about it.
#[derive(Debug)]
pub(crate) struct Body {
    /// Canonical, with `kind` and `apiVersion` set.
    pub(crate) value: Value,
    /// Unknown and repeated fields, in the words of the Warning header.
    pub(crate) warnings: Vec<String>,
}

/// What a body must be.
#[derive(Debug, Clone)]
pub(crate) struct Expected {
    pub(crate) kind: &'static str,
    /// The Go package of the kind, as messages name it: `core`, `discovery`.
    package: &'static str,
    pub(crate) api_version: String,
    pub(crate) schema: &'static Struct,
}

impl Expected {
    /// An object of a kind.
    pub(crate) fn object(kind: &'static Kind) -> Expected {
        let package = kind.group.split('.').next().filter(|p| !p.is_empty()).unwrap_or("core");
        Expected { kind: kind.kind, package, api_version: kind.api_version(), schema: kind.schema }
    }

    /// An object of the protocol that is not a kind of ours, such as `DeleteOptions`.
    pub(crate) fn message(kind: &'static str, api_version: &str, schema: &'static Struct) -> Expected {
        Expected { kind, package: "core", api_version: api_version.to_owned(), schema }
    }
}

/// Decodes a body of a given media type.
pub(crate) fn decode(
    body: &[u8],
    media: &str,
    expected: &Expected,
    validation: FieldValidation,
    settings: &Settings,
) -> Result<Body, Failure> {
    let (value, mut notes) = match media {
        "" | "application/json" => from_json(body, expected)?,
        "application/yaml" => from_yaml(body, expected)?,
        "application/vnd.kubernetes.protobuf" => (from_protobuf(body, expected)?, Vec::new()),
        _ => return Err(unsupported_media()),
    };
    check_kind(&value, expected)?;
    let sent_reset = managed_reset(&value);
    let decoded = decode::decode_gated(expected.schema, value, &|gate| settings.allows(gate))
        .map_err(|e| cannot_be_handled(expected, &e.to_string()))?;
    let Decoded { mut value, unknown } = decoded;
    set_type(&mut value, expected);
    if let Some(sent) = sent_reset {
        managed::keep_reset(&sent, &mut value);
    }
    notes.extend(unknown.iter().map(|path| format!("unknown field \"{path}\"")));
    match validation {
        FieldValidation::Strict if !notes.is_empty() => {
            Err(cannot_be_handled(expected, &format!("strict decoding error: {}", strict(&notes))))
        }
        FieldValidation::Ignore => Ok(Body { value, warnings: Vec::new() }),
        _ => Ok(Body { value, warnings: notes }),
    }
}

/// The wish to empty managedFields, which decoding would lose.
fn managed_reset(value: &Value) -> Option<Value> {
    let list = value.at("metadata").at("managedFields");
    list.as_array().is_some_and(Vec::is_empty).then(|| fairlead_api::json!({"metadata": {"managedFields": []}}))
}

/// Everything a strict reader objects to, in one line; YAML's own complaints come first, together.
fn strict(notes: &[String]) -> String {
    let (yaml, other): (Vec<&String>, Vec<&String>) = notes.iter().partition(|note| note.starts_with("line "));
    let yaml = yaml.iter().map(|note| note.as_str()).collect::<Vec<_>>().join("\n  ");
    let yaml = (!yaml.is_empty()).then(|| format!("yaml: unmarshal errors:\n  {yaml}"));
    yaml.into_iter().chain(other.into_iter().cloned()).collect::<Vec<_>>().join(", ")
}

fn from_json(body: &[u8], expected: &Expected) -> Result<(Value, Vec<String>), Failure> {
    let unrecognized =
        |why: &str| unrecognized(expected, &format!("couldn't get version/kind; json parse error: {why}"), body);
    let parsed = json::parse(body).map_err(|why| unrecognized(&why))?;
    if !(parsed.value.is_object() || parsed.value.is_null()) {
        let found = json_type(&parsed.value);
        return Err(unrecognized(&format!(
            "json: cannot unmarshal {found} into Go value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}"
        )));
    }
    let duplicates = parsed.duplicates.iter().map(|path| format!("duplicate field \"{path}\"")).collect();
    Ok((parsed.value, duplicates))
}

fn from_yaml(body: &[u8], expected: &Expected) -> Result<(Value, Vec<String>), Failure> {
    let parsed = crate::yaml::parse(body).map_err(|why| unrecognized(expected, &format!("yaml: {why}"), body))?;
    Ok((parsed.value, parsed.duplicates))
}

fn from_protobuf(body: &[u8], expected: &Expected) -> Result<Value, Failure> {
    let envelope = proto::unwrap(body).map_err(|e| unrecognized(expected, &e.to_string(), body))?;
    let named = fairlead_api::json!({"apiVersion": envelope.api_version, "kind": envelope.kind});
    check_kind(&named, expected)?;
    let mut value =
        proto::read(expected.schema, envelope.raw).map_err(|e| cannot_be_handled(expected, &e.to_string()))?;
    set_type(&mut value, expected);
    Ok(value)
}

/// The body must be of the kind and version of the URL, or not say what it is.
pub(crate) fn check_kind(value: &Value, expected: &Expected) -> Result<(), Failure> {
    let (api_version, kind) = (value.text("apiVersion"), value.text("kind"));
    let api_version = if api_version.is_empty() { expected.api_version.as_str() } else { api_version };
    let kind = if kind.is_empty() { expected.kind } else { kind };
    if (api_version, kind) == (expected.api_version.as_str(), expected.kind) || is_options(kind, expected) {
        return Ok(());
    }
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let known =
        kinds::KINDS.iter().chain(kinds::OPTIONAL).any(|k| k.kind == kind && k.group == group && k.version == version);
    if known && kind == expected.kind {
        return Err(Failure::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({})",
            expected.api_version
        )));
    }
    let why = if known {
        format!("converting ({version}.{kind}) to ({}.{}): unknown conversion", expected.package, expected.kind)
    } else {
        format!(
            "no kind \"{kind}\" is registered for version \"{api_version}\" in scheme \"pkg/api/legacyscheme/scheme.go:30\""
        )
    };
    Err(Failure::bad_request(format!(
        "{kind} in version \"{version}\" cannot be handled as a {}: {why}",
        expected.kind
    )))
}

/// `DeleteOptions` and the like belong to every group.
fn is_options(kind: &str, expected: &Expected) -> bool {
    kind == expected.kind && kind.ends_with("Options")
}

/// Sets `kind` and `apiVersion`, first of all fields.
pub(crate) fn set_type(value: &mut Value, expected: &Expected) {
    let mut typed = match value.take() {
        Value::Object(map) => map,
        _ => fairlead_api::value::Map::new(),
    };
    typed.shift_insert(0, "kind", expected.kind.into());
    typed.shift_insert(1, "apiVersion", expected.api_version.clone().into());
    *value = Value::Object(typed);
}

fn cannot_be_handled(expected: &Expected, why: &str) -> Failure {
    let version = expected.api_version.rsplit('/').next().unwrap_or_default();
    let kind = expected.kind;
    Failure::bad_request(format!("{kind} in version \"{version}\" cannot be handled as a {kind}: {why}"))
}

fn unrecognized(expected: &Expected, why: &str, body: &[u8]) -> Failure {
    Failure::bad_request(format!(
        "the object provided is unrecognized (must be of type {}): {why} ({})",
        expected.kind,
        excerpt(body)
    ))
}

/// The beginning of a body: as text when it looks like JSON, else in hexadecimal.
fn excerpt(body: &[u8]) -> String {
    const SHOWN: usize = 30;
    let part = &body[..body.len().min(SHOWN)];
    let text = match part.first() {
        None => return "<empty>".to_owned(),
        Some(b'{') => String::from_utf8_lossy(part).into_owned(),
        Some(_) => part.iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    if body.len() > SHOWN { format!("{text} ...") } else { text }
}

/// 415.
pub(crate) fn unsupported_media() -> Failure {
    Failure::new(
        415,
        "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include: application/json, \
         application/yaml, application/vnd.kubernetes.protobuf",
    )
}

/// A JSON type as Go names it.
pub(crate) fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
