//! Paths as OpenAPI 2 and 3 write them.

use crate::value::{Map, Value, json};

use super::paths::{Operation, Parameter, Path};
use super::schemas::Dialect;

const ANSWERS: &[&str] = &["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
const STREAMS: &[&str] = &["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"];
const PATCHES: &[&str] = &[
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
];

/// The `paths` of a version 3 document.
pub(super) fn v3(paths: &[Path]) -> Value {
    items(paths, v3_parameter, v3_operation)
}

/// The `paths` of a version 2 document.
pub(super) fn v2(paths: &[Path]) -> Value {
    items(paths, v2_parameter, v2_operation)
}

fn items(paths: &[Path], parameter: fn(&Parameter) -> Value, operation: fn(&Operation) -> Value) -> Value {
    let item = |path: &Path| {
        let operations = path.operations.iter().map(|one| (one.method.to_owned(), operation(one)));
        let mut item: Map = operations.collect();
        item.insert("parameters", path.parameters.iter().map(parameter).collect());
        (path.url.clone(), Value::Object(item))
    };
    Value::Object(paths.iter().map(item).collect())
}

fn v3_operation(of: &Operation) -> Value {
    let mut out = common(of, v3_parameter);
    if let Some(body) = &of.body {
        let types: &[&str] = if of.action == "patch" { PATCHES } else { &["*/*"] };
        out["requestBody"] = json!({"content": content(types, body)});
        // Only what is deleted may go without saying how.
        if of.method != "delete" {
            out["requestBody"]["required"] = true.into();
        }
    }
    let responses = of.codes.iter().map(|(code, text)| {
        let mut response = json!({"description": text});
        if let Some(answer) = &of.answer {
            response["content"] = content(&answer_types(of), answer);
        }
        ((*code).to_owned(), response)
    });
    out["responses"] = Value::Object(responses.chain([unauthorized()]).collect());
    extensions(of, &mut out);
    out
}

fn v2_operation(of: &Operation) -> Value {
    let mut out = common(of, v2_parameter);
    out["consumes"] = if of.action == "patch" { PATCHES.into() } else { json!(["*/*"]) };
    out["produces"] = answer_types(of).into();
    if let (Some(body), Some(parameters)) = (&of.body, out["parameters"].as_array_mut()) {
        let schema = Dialect::V2.reference(body);
        let mut parameter = json!({"name": "body", "in": "body", "schema": schema});
        if of.method != "delete" {
            parameter["required"] = true.into();
        }
        parameters.insert(0, parameter);
    }
    let responses = of.codes.iter().map(|(code, text)| {
        let mut response = json!({"description": text});
        if let Some(answer) = &of.answer {
            response["schema"] = Dialect::V2.reference(answer);
        }
        ((*code).to_owned(), response)
    });
    out["responses"] = Value::Object(responses.chain([unauthorized()]).collect());
    extensions(of, &mut out);
    out
}

fn common(of: &Operation, parameter: fn(&Parameter) -> Value) -> Value {
    json!({
        "tags": [of.tag],
        "description": of.description,
        "operationId": of.id,
        "parameters": of.parameters.iter().map(parameter).collect::<Vec<_>>(),
    })
}

fn extensions(of: &Operation, out: &mut Value) {
    out["x-kubernetes-action"] = of.action.into();
    out["x-kubernetes-group-version-kind"] = of.gvk.clone();
}

fn unauthorized() -> (String, Value) {
    ("401".to_owned(), json!({"description": "Unauthorized"}))
}

fn answer_types(of: &Operation) -> Vec<&'static str> {
    match (of.action, &of.answer) {
        (_, None) => vec!["*/*"],
        ("list", _) => [ANSWERS, STREAMS].concat(),
        _ => ANSWERS.to_vec(),
    }
}

fn content(types: &[&str], name: &str) -> Value {
    let schema = json!({"schema": Dialect::V3.reference(name)});
    Value::Object(types.iter().map(|media| ((*media).to_owned(), schema.clone())).collect())
}

fn v3_parameter(of: &Parameter) -> Value {
    let mut out = json!({
        "name": of.name,
        "in": of.place,
        "description": of.description,
        "schema": {"type": of.kind, "uniqueItems": true},
    });
    if of.place == "path" {
        out["required"] = true.into();
    }
    out
}

fn v2_parameter(of: &Parameter) -> Value {
    let mut out = json!({
        "name": of.name,
        "in": of.place,
        "description": of.description,
        "type": of.kind,
        "uniqueItems": true,
    });
    if of.place == "path" {
        out["required"] = true.into();
    }
    out
}
