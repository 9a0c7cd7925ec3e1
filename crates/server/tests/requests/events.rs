//! Selections of events by fields that each version of the API names differently.

use fairlead_server::{Admission, Authorization};
use serde_json::json;

use crate::world::{TestServer, admin};

#[tokio::test]
async fn fields_are_found_by_the_names_of_either_version() {
    let server = TestServer::new(Admission::default(), Authorization::Rbac).await;
    let events = "/apis/events.k8s.io/v1/namespaces/default/events";
    let event = json!({
        "metadata": {"name": "e"}, "eventTime": "2026-01-01T00:00:00.000000Z", "action": "Do", "reason": "R", "type": "Normal",
        "reportingController": "test-controller", "reportingInstance": "i",
        "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
    });
    server.make(events, event).await;
    let core = "/api/v1/namespaces/default/events";
    let table = [
        (events, "reportingController=test-controller", 1),
        (events, "reportingController=another", 0),
        (events, "regarding.name=p,regarding.kind=Pod", 1),
        (events, "regarding.name=other", 0),
        (events, "reason=R,type=Normal", 1),
        (core, "source=test-controller", 1),
        (core, "reportingComponent=test-controller", 1),
        (core, "involvedObject.name=p", 1),
    ];
    for (path, selector, found) in table {
        let selector = selector.replace('=', "%3D");
        let answer = server.send(admin(), "GET", &format!("{path}?fieldSelector={selector}"), "").await;
        assert_eq!(answer.code, 200, "{}", answer.body);
        assert_eq!(answer.body["items"].as_array().map(Vec::len), Some(found), "{path} {selector}");
    }
}
