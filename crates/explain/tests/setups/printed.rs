//! What people and programs get to read.

use fairlead_api::source::Key;
use fairlead_explain::{Cause, StepId, check, explain};

use crate::lab::Lab;

#[test]
fn a_report_is_printed_step_by_step_with_marks_and_remedies() {
    let seen = Lab::new().service("spec: {selector: {app: wbe}}").build();
    let text = explain(&seen.question, &seen.objects, &seen.evidence).to_string();
    let beginning = "\
✓ The Service exists
    ClusterIP 10.96.0.20, http 80/TCP -> 9376
✓ Its spec has what is asked for
✗ Its selector matches Pods
    app=wbe matches no Pod of namespace default
    nearly: web-1 has app=web
    nearly: web-2 has app=web
  LabelValueDiffers: the selector asks for app=wbe, but Pod web-1 has app=web
    $ kubectl patch service web -n default -p '{\"spec\":{\"selector\":{\"app\":\"web\"}}}'
    $ kubectl label pod web-1 -n default app=wbe --overwrite
· Its Pods are ready
    first: its selector matches Pods
";
    assert!(text.starts_with(beginning), "{text}");
    let end = "default/web does not work: the selector asks for app=wbe, but Pod web-1 has app=web";
    assert!(text.ends_with(end), "{text}");
}

#[test]
fn a_report_is_json_with_the_keys_of_the_protocol() {
    let seen = Lab::new().all_listen("127.0.0.1:9376/TCP").build();
    let json = explain(&seen.question, &seen.objects, &seen.evidence).to_json();
    assert_eq!(json["service"], "default/web");
    assert_eq!(json["verdict"], "broken");
    assert_eq!(json["first"], "ListensOnLoopback");
    assert!(json["live"].is_null());
    let ids: Vec<&str> = json["steps"].as_array().unwrap().iter().map(|step| step["id"].as_str().unwrap()).collect();
    let all = "exists spec selector pods ports listening slices dns loadBalancer plan rules path reply";
    assert_eq!(ids.join(" "), all);
    let step = &json["steps"][5];
    assert_eq!((step["state"].as_str(), step["title"].as_str()), (Some("bad"), Some(StepId::Listening.title())));
    let finding = &step["findings"][0];
    assert_eq!((finding["cause"].as_str(), finding["severity"].as_str()), (Some("ListensOnLoopback"), Some("broken")));
    assert!(finding["remedy"].as_array().is_some_and(|remedy| !remedy.is_empty()));
}

#[test]
fn a_change_concerns_the_services_it_may_change_something_for() {
    let mut seen =
        Lab::new().service("spec: {selector: {app: shop}}").with_pod("default", "x", "10.244.1.3", "n1", "y").build();
    let web = Key::new("default", "web");
    assert_eq!(check(&web, &seen.objects).first, Some(Cause::SelectorMatchesNothing));
    // A Pod with almost the labels changes what there is to say, although nothing selects it.
    let x = Key::new("default", "x");
    let pod: fairlead_explain::Pod =
        serde_json::from_str(r#"{"metadata": {"name": "x", "namespace": "default", "labels": {"app": "shpo"}}}"#)
            .unwrap();
    let concerned = seen.objects.apply([fairlead_explain::Change::Pod(x.clone(), Some(pod.into()))]);
    assert!(concerned.contains(&web), "{concerned:?}");
    assert_eq!(check(&web, &seen.objects).first, Some(Cause::LabelValueDiffers));
    let concerned = seen.objects.apply([fairlead_explain::Change::Pod(x, None)]);
    assert!(concerned.contains(&web), "{concerned:?}");
}

#[test]
fn what_a_load_balancer_says_is_told_and_what_others_say_is_not() {
    let pending = |component: &str, reason: &str| {
        let event = format!(
            "{{kind: Event, metadata: {{name: e, namespace: default}}, type: Warning, reason: {reason}, message: 'so it is',
               source: {{component: {component}}}, involvedObject: {{kind: Service, namespace: default, name: web}}}}"
        );
        let seen = Lab::new().service("spec: {type: LoadBalancer}").with(&event).build();
        let report = check(&seen.question.service, &seen.objects);
        assert_eq!(report.first, Some(Cause::LoadBalancerPending));
        report.why().contains("so it is")
    };
    for (component, reason, told) in [
        ("fairlead-balancer", "Whatever", true),
        ("service-controller", "SyncLoadBalancerFailed", true),
        ("metallb-controller", "AllocationFailed", true),
        ("service", "FailedDeployModel", true),
        ("fairlead-explain", "LabelValueDiffers", false),
        ("fairlead-explain", "LoadBalancerPending", false),
        ("fairlead-proxy", "TopologyAwareHintsDisabled", false),
    ] {
        assert_eq!(pending(component, reason), told, "{component} {reason}");
    }
}

#[test]
fn a_service_is_copied_to_another_namespace_without_what_was_given_to_it() {
    let seen = Lab::new()
        .without("Pod", "web-1")
        .without("Pod", "web-2")
        .with_pod("it's", "web-1", "10.244.1.7", "n1", "web")
        .service(
            "spec: {type: NodePort, ports: [{name: http, port: 80, targetPort: http, nodePort: 30080, protocol: TCP}]}",
        )
        .build();
    let report = explain(&seen.question, &seen.objects, &seen.evidence);
    assert_eq!(report.first, Some(Cause::PodsInOtherNamespace));
    let command = &report.first_finding().unwrap().remedy[1];
    let json = command.strip_prefix("echo '").and_then(|rest| rest.strip_suffix("' | kubectl apply -f -")).unwrap();
    assert!(json.contains(r"it'\''s"), "{command}");
    let made: serde_json::Value = serde_json::from_str(&json.replace(r"'\''", "'")).unwrap();
    let expected = serde_json::json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "it's"},
        "spec": {"type": "NodePort", "selector": {"app": "web"},
            "ports": [{"name": "http", "port": 80, "protocol": "TCP", "targetPort": "http"}]},
    });
    assert_eq!(made, expected);
}

#[test]
fn whatever_comes_from_objects_is_quoted_in_commands() {
    let seen = Lab::new()
        .service("spec: {selector: {app: \"we'b; rm\"}}")
        .pods("metadata: {labels: {app: \"we'b; rn\"}}")
        .build();
    let report = explain(&seen.question, &seen.objects, &seen.evidence);
    let remedy = &report.first_finding().unwrap().remedy;
    assert_eq!(remedy[1], r"kubectl label pod web-1 -n default 'app=we'\''b; rm' --overwrite");
}
