//! What can be wrong with a Service, in a word each. Events have these words as their reason.

use std::fmt;

use serde::{Serialize, Serializer};

macro_rules! causes {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// Why a Service does not work.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Cause {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Cause {
            /// All of them, in the order of the steps that find them.
            pub const ALL: &[Cause] = &[$(Cause::$name,)+];

            /// What it means, in a sentence.
            pub fn meaning(self) -> &'static str {
                match self {
                    $(Cause::$name => concat!($($doc),+).trim_ascii(),)+
                }
            }

            /// The word.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Cause::$name => stringify!($name),)+
                }
            }
        }
    };
}

causes! {
    // It exists.
    /// There is no such namespace.
    NamespaceMissing,
    /// There is no such Service, nor one like it.
    ServiceMissing,
    /// There is no such Service, but one with almost that name.
    ServiceNameMisspelt,
    /// There is one of that name in another namespace.
    ServiceInOtherNamespace,
    /// It is on its way out.
    ServiceBeingDeleted,

    // Its spec has what is asked for.
    /// It is an alias for what is an address and no name.
    ExternalNameIsAddress,
    /// It is an alias that leads back to itself.
    ExternalNameLoops,
    /// It is an alias for a Service that does not exist.
    ExternalNameTargetMissing,
    /// It is an alias for what HTTP or TLS is spoken to, whose servers know another name than clients say.
    ExternalNameChangesHost,
    /// It has no ports.
    NoPorts,
    /// The client uses a port it does not have.
    PortUnknown,
    /// The client uses the port of the Pods.
    TargetPortUsed,
    /// The client uses the port of the Nodes at the cluster IP.
    NodePortUsed,
    /// A headless Service has only the ports of its endpoints: nobody translates its own to them.
    HeadlessPortUsed,
    /// The port exists, but for another protocol.
    ProtocolDiffers,
    /// It has no cluster IP yet.
    ClusterIpMissing,
    /// A label gives it to another proxy.
    LeftToOtherProxy,
    /// A label says that it is headless although it is not.
    LabelledHeadless,
    /// Nothing of it can be reached from outside of the cluster.
    NotExposed,
    /// From outside it is reached at another port: that of the Nodes.
    NodePortNeeded,

    // Its selector matches Pods.
    /// There are no Pods in its namespace.
    NoPods,
    /// No Pod has the labels, and none almost.
    SelectorMatchesNothing,
    /// A Pod has another value for a label.
    LabelValueDiffers,
    /// A Pod has the value under another key.
    LabelKeyDiffers,
    /// A Pod has the label but for upper and lower case.
    LabelCaseDiffers,
    /// A Pod has all labels but one.
    LabelMissing,
    /// Pods have the labels, in another namespace.
    PodsInOtherNamespace,

    // Its Pods are ready.
    /// No Node can take the Pod.
    PodUnschedulable,
    /// Nobody gave the Pod to a Node.
    PodNotScheduled,
    /// The Node of the Pod is gone.
    NodeMissing,
    /// The Node of the Pod is not ready.
    NodeNotReady,
    /// The Pod ended with a mistake, or was evicted.
    PodFailed,
    /// The Pod has done its work and ended.
    PodSucceeded,
    /// The Pod is on its way out, and there is no other.
    PodTerminating,
    /// The image of a container cannot be had.
    ImagePullFailed,
    /// A container cannot be made as it is described.
    ContainerConfigWrong,
    /// A container cannot be started.
    ContainerStartFailed,
    /// A container ends again and again.
    CrashLoop,
    /// A container uses more memory than it may.
    OutOfMemory,
    /// A container has ended and is not started again.
    ContainerEnded,
    /// An init container does not succeed.
    InitContainerFailing,
    /// Init containers have not ended yet.
    InitContainerRunning,
    /// The startup probe has not passed.
    StartupProbeFailing,
    /// The readiness probe does not pass.
    ReadinessProbeFailing,
    /// A condition that somebody else must set is not true.
    ReadinessGateClosed,
    /// The Pod is about to start.
    PodStarting,
    /// The Pod has no address.
    PodWithoutAddress,
    /// The Pod has no address of the Service's family.
    PodFamilyDiffers,
    /// The Pod does not say that it is ready, nor why.
    PodNotReady,

    // They have its target ports.
    /// No container port has the name.
    TargetPortNameMissing,
    /// A container port has almost the name.
    TargetPortMisspelt,
    /// A container port has the name, but for another protocol.
    TargetPortProtocolDiffers,
    /// The containers name other ports than this number.
    TargetPortNotDeclared,

    // Something listens there.
    /// Nothing listens in the Pod.
    NothingListens,
    /// Something listens, on another port.
    ListensOnOtherPort,
    /// It listens on a loopback address alone.
    ListensOnLoopback,
    /// It listens for another protocol.
    ListensOnOtherProtocol,
    /// It listens for the other family alone.
    ListensOnOtherFamily,
    /// It listens on an address that is not the endpoint's.
    ListensOnOtherAddress,

    // EndpointSlices list them.
    /// Whoever makes EndpointSlices does not run.
    ControllerNotRunning,
    /// There are no EndpointSlices although there are Pods.
    SlicesMissing,
    /// EndpointSlices do not say what Pods are.
    SlicesStale,
    /// A Service without selector needs endpoints made by hand, and there are none.
    NoEndpointsByHand,
    /// A slice made by hand names another Service, or none.
    SliceLabelWrong,
    /// A slice for a Service of that name is in another namespace.
    SliceInOtherNamespace,
    /// A port of a slice made by hand has another name than the Service's.
    SlicePortNameDiffers,
    /// A port of a slice made by hand has another protocol than the Service's.
    SlicePortProtocolDiffers,
    /// A slice made by hand has addresses of another family, or names.
    SliceFamilyDiffers,
    /// The endpoints say that they are not ready.
    EndpointsNotReady,
    /// All endpoints are on their way out.
    EndpointsTerminating,
    /// All endpoints have weight 0.
    AllWeightsZero,
    /// An endpoint is the cluster IP of a Service.
    EndpointIsClusterIp,
    /// Endpoints made by hand are not mirrored.
    EndpointsNotMirrored,

    // Its name resolves.
    /// The DNS server does not answer.
    DnsSilent,
    /// The DNS server answers with a mistake.
    DnsFails,
    /// The client does not ask the cluster's DNS.
    DnsPolicySkipsCluster,
    /// The client brings settings of its own, which do not lead to the cluster's DNS.
    DnsPolicyNone,
    /// The client uses the short name in another namespace.
    ShortNameOfOtherNamespace,
    /// The client's ndots keep its resolver from trying the search path.
    NdotsTooLow,
    /// The client's search path lacks what its short name needs.
    SearchPathIncomplete,
    /// The DNS server does not know the Service.
    DnsNameMissing,
    /// The name leads to other addresses than the Service's.
    DnsAnswerDiffers,

    // Its load balancer has an address.
    /// Nobody who gives addresses to load balancers runs.
    LoadBalancerMissing,
    /// It names a class that nobody here serves.
    LoadBalancerClassUnknown,
    /// There is no pool of addresses.
    LoadBalancerNoPool,
    /// It has no address yet.
    LoadBalancerPending,
    /// A port of it does not work.
    LoadBalancerPortFails,
    /// The Node that should announce its address may not, as its kernel does not take the rules
    /// that guard it.
    LoadBalancerNotAnnounced,

    // The plan forwards the packet.
    /// Another Service has the same address and port, and gets the packets.
    AddressTaken,
    /// Policy Local, and the client's Node has no endpoint.
    NoLocalEndpoint,
    /// The client's address is not among those allowed.
    SourceNotAllowed,
    /// Node ports are not served on that address.
    NodePortNotServedHere,
    /// The proxy does not handle the family.
    FamilyNotProxied,
    /// No topology key has an endpoint.
    NoTopologyMatch,
    /// The proxy would refuse or drop it for another reason.
    PlanRefuses,

    // The kernel has its rules.
    /// The proxy does not run.
    ProxyNotRunning,
    /// The proxy complains.
    ProxyFails,
    /// The proxy has not come to the latest changes yet.
    ProxyBehind,
    /// The kernel has no rules for the Service.
    RulesMissing,
    /// The kernel's rules lead elsewhere.
    RulesStale,

    // Nothing else stands in the way.
    /// The kernel does not forward packets.
    ForwardingOff,
    /// A rule of somebody else drops the packet.
    ForeignRuleDrops,

    // A packet is answered.
    /// The endpoint refuses connections.
    ConnectionRefused,
    /// Nothing comes back.
    NoReply,
    /// The packet cannot even be sent.
    SendFailed,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Cause {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_str())
    }
}
