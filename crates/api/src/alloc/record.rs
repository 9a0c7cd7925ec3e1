//! The IPAddress object that says which Service has a cluster IP.

use std::net::IpAddr;

use crate::value::Value;

use crate::field::{FieldError, FieldErrors, Path};
use crate::status::Subject;
use crate::{Failure, Look, names};

/// The IPAddress object for a cluster IP of the Service `namespace/name`, without what every write sets (uid, times).
pub fn ip_address_object(ip: IpAddr, namespace: &str, name: &str) -> Value {
    let family = if ip.is_ipv6() { "IPv6" } else { "IPv4" };
    let object = |fields: Vec<(&'static str, Value)>| fields.into_iter().collect::<Value>();
    object(vec![
        ("kind", "IPAddress".into()),
        ("apiVersion", "networking.k8s.io/v1".into()),
        (
            "metadata",
            object(vec![
                ("name", crate::ip::canonical(ip).into()),
                (
                    "labels",
                    object(vec![
                        ("ipaddress.kubernetes.io/ip-family", family.into()),
                        ("ipaddress.kubernetes.io/managed-by", "ipallocator.k8s.io".into()),
                    ]),
                ),
            ]),
        ),
        (
            "spec",
            object(vec![(
                "parentRef",
                object(vec![("resource", "services".into()), ("namespace", namespace.into()), ("name", name.into())]),
            )]),
        ),
    ])
}

/// Why an IPAddress object cannot name a Service. Most bad names of Services are found by their own rules, later.
pub(super) fn reason_against(service: &Value, ip: IpAddr) -> Option<String> {
    let path = Path::new("spec.parentRef");
    let invalid = |field: &str, value: &str| -> FieldErrors {
        let reasons = names::path_segment(value).into_iter();
        reasons.map(|reason| FieldError::invalid(&path.child(field), value, reason)).collect()
    };
    let metadata = service.at("metadata");
    let mut errors = match metadata.text("name") {
        "" => FieldErrors::from([FieldError::required(&path.child("name"), "")]),
        name => invalid("name", name),
    };
    errors.extend(invalid("namespace", metadata.text("namespace")));
    if errors.is_empty() {
        return None;
    }
    let name = crate::ip::canonical(ip);
    let subject = Subject { group: "networking.k8s.io", kind: "IPAddress", name: &name };
    Some(Failure::invalid(subject, &errors).message)
}
