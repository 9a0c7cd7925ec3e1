//! What every cluster has from its first moment: the namespaces, the default ServiceCIDR, and the `kubernetes` Service that
//! leads to the API servers, the built-in roles. Made if missing.

use std::time::Instant;

use fairlead_api::value::{Value, json};
use fairlead_api::{Failure, Kind, Look, kinds};
use futures_util::future::try_join_all;

use crate::options::{FieldValidation, WriteOptions};
use crate::route::Target;
use crate::{Inner, live_servers, object, read, write};

/// Namespaces that are always there.
const NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// Makes what is missing.
pub(crate) async fn run(server: &Inner) -> Result<(), Failure> {
    // All at once: the store commits in groups, so this costs a few disk writes and not a hundred.
    let namespaces = NAMESPACES.map(|name| (&kinds::NAMESPACE, json!({"metadata": {"name": name}})));
    let first = namespaces.into_iter().chain([(&kinds::SERVICE_CIDR, service_cidr(server))]);
    try_join_all(first.map(|(kind, object)| ensure(server, kind, object))).await?;
    let roles = crate::auth::rbac::builtin::objects();
    let second = roles.into_iter().chain([(&kinds::SERVICE, service(server))]);
    try_join_all(second.map(|(kind, object)| ensure(server, kind, object))).await?;
    live_servers::begin(server).await
}

fn service_cidr(server: &Inner) -> Value {
    let cidrs: Vec<String> = server.options.settings.service_ranges.iter().map(ToString::to_string).collect();
    json!({"metadata": {"name": "kubernetes"}, "spec": {"cidrs": cidrs}})
}

/// The Service has the first address of the range.
fn service(server: &Inner) -> Value {
    let first = server.options.settings.service_ranges.first().and_then(|range| range.hosts().next());
    let mut spec = json!({
        "ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": server.options.advertise.port()}],
        "type": "ClusterIP",
        "sessionAffinity": "None",
    });
    if let Some(first) = first {
        spec.set("clusterIP", first.to_string());
        spec.set("clusterIPs", json!([first.to_string()]));
    }
    let labels = json!({"component": "apiserver", "provider": "kubernetes"});
    json!({"metadata": {"name": "kubernetes", "namespace": "default", "labels": labels}, "spec": spec})
}

/// Creates an object unless there is one of that name.
pub(crate) async fn ensure(server: &Inner, kind: &'static Kind, value: Value) -> Result<(), Failure> {
    let target = target(kind, &value);
    match read::find(&*server.store, &target).await {
        Err(Failure { code: 404, .. }) => {}
        other => return other.map(|_| ()),
    }
    let object = write::canonical(kind, value);
    let Err(failure) = request(server, &target).create(object).await else { return Ok(()) };
    // Another server on the same store may have been quicker; then the object is there, or its address is taken.
    read::find(&*server.store, &target).await.map(drop).map_err(|_| failure)
}

/// Creates an object, or brings its content up to date.
pub(crate) async fn keep(server: &Inner, kind: &'static Kind, value: Value) -> Result<(), Failure> {
    ensure(server, kind, value.clone()).await?;
    let target = target(kind, &value);
    let entry = read::find(&*server.store, &target).await?;
    let mut object = object::load(kind, &entry)?;
    let fields = || value.as_object().into_iter().flatten().filter(|(name, _)| *name != "metadata");
    // A write would make this server an owner of the fields, also of those that are as they should
    // be.
    let empty = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    let same = |found: &Value, wanted: &Value| found == wanted || empty(found) && empty(wanted);
    if fields().all(|(name, content)| same(object.at(name), content)) {
        return Ok(());
    }
    for (name, content) in fields() {
        object.set(name.clone(), content.clone());
    }
    // Without a condition: servers that start together write one after another.
    object.map_mut("metadata").shift_remove("resourceVersion");
    let object = write::canonical(kind, object);
    request(server, &target).replace(object).await.map(|_| ())
}

fn target(kind: &'static Kind, value: &Value) -> Target {
    let metadata = value.at("metadata");
    Target {
        kind,
        namespace: metadata.text("namespace").to_owned(),
        name: metadata.text("name").to_owned(),
        subresource: String::new(),
        rest: String::new(),
        watch: false,
    }
}

fn request<'a>(server: &'a Inner, target: &'a Target) -> write::Request<'a> {
    let options = WriteOptions {
        dry_run: false,
        field_manager: "fairlead".to_owned(),
        field_validation: FieldValidation::Ignore,
        force: false,
    };
    write::Request {
        server,
        target,
        user: None,
        options,
        warnings: Vec::new(),
        how: write::How::Replace,
        started: Instant::now(),
        placed: false,
    }
}
