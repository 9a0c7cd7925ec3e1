//! Services without Pods, and Pods that are not ready.

use fairlead_explain::Cause;

use crate::lab::{Lab, Row, row, warns};

pub(crate) fn rows() -> Vec<Row> {
    [selectors(), scheduling(), containers(), probes(), ends()].into_iter().flatten().collect()
}

fn selectors() -> Vec<Row> {
    let selector = |pairs: &str| Lab::new().service(&format!("spec: {{selector: {pairs}}}"));
    vec![
        row("a selector with two letters swapped", Cause::LabelValueDiffers, selector("{app: wbe}")),
        row("Pods with a letter too many in a label", Cause::LabelValueDiffers, Lab::new().pods("metadata: {labels: {app: webb}}")),
        row("one label of two has another value", Cause::LabelValueDiffers, selector("{app: web, track: stable}").pods("metadata: {labels: {track: canary}}")),
        row("one label of two is missing", Cause::LabelMissing, selector("{app: web, tier: front}")),
        row("the value under another key", Cause::LabelKeyDiffers, selector("{app: null, k8s-app: web}")),
        row("a misspelt key", Cause::LabelKeyDiffers, selector("{app: null, appp: web}")),
        row("a capital letter in a value", Cause::LabelCaseDiffers, selector("{app: Web}")),
        row("a capital letter in a key", Cause::LabelCaseDiffers, selector("{app: null, App: web}")),
        row("a selector for quite other Pods", Cause::SelectorMatchesNothing, selector("{app: null, release: blue}")),
        row(
            "the Pods are in another namespace",
            Cause::PodsInOtherNamespace,
            Lab::new().without("Pod", "web-1").without("Pod", "web-2").with_pod("shop", "web-1", "10.244.1.7", "n1", "web"),
        ),
        row(
            "no Pods here, and another copy of all of it in another namespace",
            Cause::SelectorMatchesNothing,
            Lab::new()
                .without("Pod", "web-1")
                .without("Pod", "web-2")
                .with_pod("shop", "web-1", "10.244.1.7", "n1", "web")
                .with("{kind: Service, metadata: {name: web, namespace: shop}, spec: {selector: {app: web}, clusterIP: 10.96.0.40}}"),
        ),
        row(
            "only Pods of something else with a label in common",
            Cause::SelectorMatchesNothing,
            selector("{app: web, tier: front}").pods("metadata: {labels: {app: api, tier: front}}"),
        ),
        row(
            "a slip here counts more than a match elsewhere",
            Cause::LabelValueDiffers,
            selector("{app: wbe}").with_pod("shop", "other", "10.244.1.9", "n1", "wbe"),
        ),
        row(
            "no Pods at all: zero replicas",
            Cause::NoPods,
            Lab::new().without("Pod", "web-1").without("Pod", "web-2").without("Pod", "client").from(fairlead_explain::From::Cluster),
        ),
        row(
            "only a client is left of the namespace's Pods",
            Cause::SelectorMatchesNothing,
            Lab::new().without("Pod", "web-1").without("Pod", "web-2"),
        ),
        warns(
            "a selector that matches nothing, and endpoints of others that serve",
            Cause::LabelValueDiffers,
            selector("{app: wbe}").with(
                "{kind: EndpointSlice, metadata: {name: web-external, namespace: default,
                   labels: {kubernetes.io/service-name: web, endpointslice.kubernetes.io/managed-by: example.com}},
                  addressType: IPv4, endpoints: [{addresses: [198.51.100.7]}], ports: [{name: http, port: 9376, protocol: TCP}]}",
            ),
        ),
    ]
}

/// Both Pods are not ready, with these fields.
fn unready(fields: &str) -> Lab {
    Lab::new()
        .pods("status: {conditions: [{type: PodScheduled, status: 'True'}, {type: Ready, status: 'False'}]}")
        .pods(fields)
}

/// Both Pods have a container in that state.
fn container(fields: &str) -> Lab {
    unready(&format!("status: {{containerStatuses: [{{name: main, ready: false, {fields}}}]}}"))
}

fn waiting(reason: &str) -> Lab {
    container(&format!("state: {{waiting: {{reason: {reason}, message: details}}}}"))
}

fn scheduling() -> Vec<Row> {
    let pending = "status: {phase: Pending, podIP: null, podIPs: null, containerStatuses: null}";
    vec![
        row(
            "no Node fits",
            Cause::PodUnschedulable,
            unready("{spec: {nodeName: null}, status: {conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable,
                message: '0/2 nodes are available'}]}}")
            .pods(pending),
        ),
        row("no scheduler runs", Cause::PodNotScheduled, unready("{spec: {nodeName: null}, status: {conditions: null}}").pods(pending)),
        row("the Node is gone", Cause::NodeMissing, unready("spec: {nodeName: n9}")),
        row("the Node of ready Pods is gone", Cause::NodeMissing, Lab::new().pods("spec: {nodeName: n9}")),
        row(
            "both Nodes are not ready",
            Cause::NodeNotReady,
            unready("")
                .node("n1", "status: {conditions: [{type: Ready, status: Unknown, message: Kubelet stopped posting node status}]}")
                .node("n2", "status: {conditions: [{type: Ready, status: 'False'}]}"),
        ),
        warns(
            "the Node of one of two ready Pods is not ready",
            Cause::NodeNotReady,
            Lab::new().node("n2", "status: {conditions: [{type: Ready, status: Unknown}]}"),
        ),
        row("the Node has not started them", Cause::PodStarting, unready(pending)),
        row("containers are being made", Cause::PodStarting, waiting("ContainerCreating")),
        row(
            "ready Pods without an address",
            Cause::PodWithoutAddress,
            Lab::new().pods("status: {podIP: null, podIPs: null}"),
        ),
        row(
            "Pods of IPv4 behind a Service of IPv6",
            Cause::PodFamilyDiffers,
            Lab::new().service("spec: {clusterIP: 'fd00:96::20', clusterIPs: ['fd00:96::20'], ipFamilies: [IPv6]}"),
        ),
    ]
}

fn containers() -> Vec<Row> {
    let init = |state: &str| {
        waiting("PodInitializing").pods(&format!("status: {{initContainerStatuses: [{{name: setup, {state}}}]}}"))
    };
    vec![
        row("an image that cannot be pulled", Cause::ImagePullFailed, waiting("ImagePullBackOff")),
        row("an image with a wrong name", Cause::ImagePullFailed, waiting("InvalidImageName")),
        row("a Secret that is missing", Cause::ContainerConfigWrong, waiting("CreateContainerConfigError")),
        row("an image where there are no images", Cause::ContainerConfigWrong, waiting("ImageNotSupported")),
        row("a command that cannot be run", Cause::ContainerStartFailed, waiting("RunContainerError")),
        row(
            "a program that is not there",
            Cause::ContainerStartFailed,
            container(
                "restartCount: 3, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 128, reason: StartError}}",
            ),
        ),
        row(
            "a crash loop",
            Cause::CrashLoop,
            container(
                "restartCount: 3, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 1, reason: Error}}",
            ),
        ),
        row(
            "a crash loop between two starts",
            Cause::CrashLoop,
            container("restartCount: 1, state: {terminated: {exitCode: 2, reason: Error, message: 'no such file'}}"),
        ),
        row(
            "a container over its memory limit",
            Cause::OutOfMemory,
            container(
                "restartCount: 2, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 137, reason: OOMKilled}}",
            ),
        ),
        row(
            "a container that ended beside one that runs",
            Cause::ContainerEnded,
            container("state: {terminated: {exitCode: 0, reason: Completed}}").pods("spec: {restartPolicy: Never}"),
        ),
        row(
            "an init container that fails",
            Cause::InitContainerFailing,
            init(
                "restartCount: 2, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 1}}",
            ),
        ),
        row(
            "an init container without its image",
            Cause::ImagePullFailed,
            init("state: {waiting: {reason: ErrImagePull}}"),
        ),
        row("an init container that does not end", Cause::InitContainerRunning, init("state: {running: {}}")),
        row(
            "an init container that counts as started and does not end",
            Cause::InitContainerRunning,
            init("started: true, state: {running: {}}"),
        ),
        row(
            "a sidecar that has started and a container that crashes",
            Cause::CrashLoop,
            container(
                "restartCount: 3, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 1}}",
            )
            .pods("spec: {initContainers: [{name: proxy, restartPolicy: Always}]}")
            .pods("status: {initContainerStatuses: [{name: proxy, started: true, ready: true, state: {running: {}}}]}"),
        ),
    ]
}

fn probes() -> Vec<Row> {
    let probed = "spec: {containers: [{name: main, readinessProbe: {tcpSocket: {port: 1}}, ports: [{name: http, containerPort: 9376}]}]}";
    let started = "spec: {containers: [{name: main, startupProbe: {tcpSocket: {port: 1}}, ports: [{name: http, containerPort: 9376}]}]}";
    let running = || container("started: true, state: {running: {}}");
    vec![
        row("a readiness probe that fails", Cause::ReadinessProbeFailing, running().pods(probed)),
        row(
            "a startup probe that fails",
            Cause::StartupProbeFailing,
            container("started: false, state: {running: {}}").pods(started),
        ),
        warns(
            "a readiness probe that fails in one of two Pods",
            Cause::ReadinessProbeFailing,
            Lab::new()
                .pod("web-2", "status: {conditions: [{type: Ready, status: 'False'}], containerStatuses: [{name: main, ready: false, state: {running: {}}}]}")
                .pod("web-2", probed)
                .with("{kind: Event, metadata: {name: e, namespace: default}, type: Warning, reason: Unhealthy,
                    message: 'Readiness probe failed: HTTP 503', involvedObject: {kind: Pod, namespace: default, name: web-2}}"),
        ),
        warns(
            "a crash loop in one of two Pods",
            Cause::CrashLoop,
            Lab::new().pod("web-2", "status: {conditions: [{type: Ready, status: 'False'}], containerStatuses: [{name: main, ready: false,
                restartCount: 4, state: {waiting: {reason: CrashLoopBackOff}}}]}"),
        ),
        row(
            "a readiness gate nobody opens",
            Cause::ReadinessGateClosed,
            unready("{spec: {readinessGates: [{conditionType: example.com/lb}]}}")
                .pods("status: {conditions: [{type: ContainersReady, status: 'True'}, {type: Ready, status: 'False', reason: ReadinessGatesNotReady}]}"),
        ),
        row(
            "Pods that do not say why",
            Cause::PodNotReady,
            unready("status: {containerStatuses: null}"),
        ),
    ]
}

fn ends() -> Vec<Row> {
    let gone = "metadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}";
    vec![
        row(
            "evicted Pods",
            Cause::PodFailed,
            unready("status: {phase: Failed, reason: Evicted, message: The node was low on resource}"),
        ),
        row("Pods of a Job that is done", Cause::PodSucceeded, unready("status: {phase: Succeeded}")),
        row("Pods on their way out", Cause::PodTerminating, unready(gone)),
        warns("Pods on their way out that still serve", Cause::PodTerminating, Lab::new().pods(gone)),
        row(
            "an old Pod on its way out and a new one that crashes",
            Cause::CrashLoop,
            container("restartCount: 3, state: {waiting: {reason: CrashLoopBackOff}}").pod("web-2", gone),
        ),
    ]
}
