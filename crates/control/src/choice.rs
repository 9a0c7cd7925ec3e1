//! Which controllers run: what `--controllers` says, in kube-controller-manager's words.

use std::collections::BTreeSet;
use std::fmt;

use thiserror::Error;

/// One controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Controller {
    /// Keeps a Pod of each DaemonSet on every Node.
    DaemonSet,
    /// Rolls out Deployments.
    Deployment,
    /// From Pods to Endpoints.
    Endpoints,
    /// From Pods to EndpointSlices.
    EndpointSlice,
    /// From looks at endpoints to the readiness in hand-made EndpointSlices.
    EndpointSliceHealth,
    /// From hand-made Endpoints to EndpointSlices.
    EndpointSliceMirroring,
    /// Deletes what belongs to an object that is gone.
    GarbageCollector,
    /// Empties namespaces that are deleted.
    Namespace,
    /// Gives Nodes ranges for their Pods.
    NodeIpam,
    /// Notices Nodes that fell silent.
    NodeLifecycle,
    /// Deletes Pods whose Node is gone.
    PodGarbageCollector,
    /// Keeps the Pods of ReplicaSets.
    ReplicaSet,
    /// Keeps the Pods of ReplicationControllers.
    ReplicationController,
    /// Publishes the certificate authority of the API in every namespace.
    RootCaPublisher,
    /// Puts Pods on Nodes.
    Scheduler,
    /// Gives every namespace an account for its Pods.
    ServiceAccount,
    /// Keeps ServiceCIDRs while addresses of theirs are in use.
    ServiceCidr,
    /// Keeps the Pods of StatefulSets.
    StatefulSet,
}

impl Controller {
    /// All there are.
    pub const ALL: [Controller; 18] = [
        Controller::DaemonSet,
        Controller::Deployment,
        Controller::Endpoints,
        Controller::EndpointSlice,
        Controller::EndpointSliceHealth,
        Controller::EndpointSliceMirroring,
        Controller::GarbageCollector,
        Controller::Namespace,
        Controller::NodeIpam,
        Controller::NodeLifecycle,
        Controller::PodGarbageCollector,
        Controller::ReplicaSet,
        Controller::ReplicationController,
        Controller::RootCaPublisher,
        Controller::Scheduler,
        Controller::ServiceAccount,
        Controller::ServiceCidr,
        Controller::StatefulSet,
    ];

    /// Its name, and a shorter one from former times.
    fn names(self) -> [&'static str; 2] {
        match self {
            Controller::DaemonSet => ["daemonset-controller", "daemonset"],
            Controller::Deployment => ["deployment-controller", "deployment"],
            Controller::Endpoints => ["endpoints-controller", "endpoint"],
            Controller::EndpointSlice => ["endpointslice-controller", "endpointslice"],
            Controller::EndpointSliceHealth => ["endpointslice-health-controller", "endpointslicehealth"],
            Controller::EndpointSliceMirroring => ["endpointslice-mirroring-controller", "endpointslicemirroring"],
            Controller::GarbageCollector => ["garbage-collector-controller", "garbagecollector"],
            Controller::Namespace => ["namespace-controller", "namespace"],
            Controller::NodeIpam => ["node-ipam-controller", "nodeipam"],
            Controller::NodeLifecycle => ["node-lifecycle-controller", "nodelifecycle"],
            Controller::PodGarbageCollector => ["pod-garbage-collector-controller", "podgc"],
            Controller::ReplicaSet => ["replicaset-controller", "replicaset"],
            Controller::ReplicationController => ["replicationcontroller-controller", "replicationcontroller"],
            Controller::RootCaPublisher => ["root-ca-certificate-publisher-controller", "root-ca-cert-publisher"],
            Controller::Scheduler => ["scheduler", "default-scheduler"],
            Controller::ServiceAccount => ["serviceaccount-controller", "serviceaccount"],
            Controller::ServiceCidr => ["service-cidr-controller", "servicecidr"],
            Controller::StatefulSet => ["statefulset-controller", "statefulset"],
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.names()[0]
    }

    /// Whether `*` means it too. A cluster whose Pods others run has these from elsewhere, and does not want ours beside them.
    pub fn is_usual(self) -> bool {
        !matches!(
            self,
            Controller::DaemonSet
                | Controller::Deployment
                | Controller::NodeIpam
                | Controller::ReplicaSet
                | Controller::ReplicationController
                | Controller::RootCaPublisher
                | Controller::Scheduler
                | Controller::ServiceAccount
                | Controller::StatefulSet
        )
    }

    fn find(name: &str) -> Option<Controller> {
        Controller::ALL.into_iter().find(|controller| controller.names().contains(&name))
    }
}

/// The controllers that run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Choice(BTreeSet<Controller>);

/// There is no such controller.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("there is no controller {name:?}; there are {}, and * for all but daemonset-controller, deployment-controller, node-ipam-controller, replicaset-controller, replicationcontroller-controller, root-ca-certificate-publisher-controller, scheduler, serviceaccount-controller and statefulset-controller", Controller::ALL.map(Controller::name).join(", "))]
pub struct Unknown {
    /// What was asked for.
    pub name: String,
}

impl Choice {
    /// All of them.
    pub fn all() -> Choice {
        Choice(Controller::ALL.into_iter().collect())
    }

    /// Reads a list: names, `-name` for all but that one, `*` for all others that are usual. Where a name stands twice, the first counts.
    pub fn parse(list: &str) -> Result<Choice, Unknown> {
        let words: Vec<&str> = list.split(',').map(str::trim).filter(|word| !word.is_empty()).collect();
        let mut said = Vec::new();
        for word in words.iter().filter(|word| **word != "*") {
            let name = word.strip_prefix('-').unwrap_or(word);
            let controller = Controller::find(name).ok_or_else(|| Unknown { name: name.to_owned() })?;
            said.push((controller, !word.starts_with('-')));
        }
        let others = words.contains(&"*");
        let runs = |controller: &Controller| {
            said.iter()
                .find(|(named, _)| named == controller)
                .map_or(others && controller.is_usual(), |(_, runs)| *runs)
        };
        Ok(Choice(Controller::ALL.into_iter().filter(runs).collect()))
    }

    /// Whether a controller runs.
    pub fn has(&self, controller: Controller) -> bool {
        self.0.contains(&controller)
    }

    /// Whether none runs.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The names, with commas between.
impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.0.iter().map(|controller| controller.name()).collect();
        f.write_str(&names.join(","))
    }
}

#[cfg(test)]
mod tests;
