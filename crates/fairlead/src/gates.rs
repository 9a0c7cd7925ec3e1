//! Feature gates: which names `--feature-gates` knows, and which may be switched.

use std::collections::BTreeMap;

/// How far a feature has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Off unless asked for.
    Alpha,
    /// On, and may one day not be switched off any more.
    Beta,
    /// Always on.
    Stable,
}

/// A feature that can be named.
#[derive(Debug)]
pub(crate) struct Gate {
    pub(crate) name: &'static str,
    pub(crate) stage: Stage,
    /// Whether it is on when nobody asks.
    pub(crate) default: bool,
    /// Whether it stays that way.
    pub(crate) locked: bool,
}

const fn stable(name: &'static str) -> Gate {
    Gate { name, stage: Stage::Stable, default: true, locked: true }
}

const fn beta(name: &'static str) -> Gate {
    Gate { name, stage: Stage::Beta, default: true, locked: true }
}

/// Every gate that has to do with Services, by name.
pub(crate) const GATES: &[Gate] = &[
    stable("AnonymousAuthConfigurableEndpoints"),
    stable("DisableAllocatorDualWrite"),
    stable("EndpointSlice"),
    stable("EndpointSliceNodeName"),
    stable("EndpointSliceProxying"),
    stable("EndpointSliceTerminatingCondition"),
    stable("IPv6DualStack"),
    stable("KubeProxyDrainingTerminatingNodes"),
    stable("LoadBalancerIPMode"),
    stable("MixedProtocolLBService"),
    stable("MultiCIDRServiceAllocator"),
    stable("NFTablesProxyMode"),
    beta("PreferSameTrafficDistribution"),
    stable("ProxyTerminatingEndpoints"),
    beta("RelaxedServiceNameValidation"),
    stable("SCTPSupport"),
    stable("ServerSideApply"),
    stable("ServiceAppProtocol"),
    stable("ServiceIPStaticSubrange"),
    stable("ServiceInternalTrafficPolicy"),
    stable("ServiceLBNodePortControl"),
    stable("ServiceLoadBalancerClass"),
    stable("ServiceLoadBalancerFinalizer"),
    stable("ServiceNodePortStaticSubrange"),
    Gate { name: "ServiceTopology", stage: Stage::Alpha, default: false, locked: false },
    stable("ServiceTrafficDistribution"),
    stable("StartupProbe"),
    beta("StrictIPCIDRValidation"),
    stable("TopologyAwareHints"),
    beta("WatchList"),
];

/// Which features are on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Gates(BTreeMap<&'static str, bool>);

impl Gates {
    /// Reads `A=true,B=false`.
    pub(crate) fn parse(text: &str) -> Result<Gates, String> {
        let mut gates: BTreeMap<&str, bool> = GATES.iter().map(|gate| (gate.name, gate.default)).collect();
        for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').ok_or_else(|| format!("missing bool value for {pair}"))?;
            let (name, value) = (name.trim(), value.trim());
            let on = switch(value).ok_or_else(|| format!("invalid value of {name}={value}, want true or false"))?;
            match name {
                "AllAlpha" => set_all(&mut gates, Stage::Alpha, on),
                "AllBeta" => set_all(&mut gates, Stage::Beta, on),
                _ => set(&mut gates, name, on)?,
            }
        }
        Ok(Gates(gates))
    }

    /// Whether a feature is on.
    pub(crate) fn on(&self, name: &str) -> bool {
        self.0.get(name).copied().unwrap_or_default()
    }
}

fn set(gates: &mut BTreeMap<&'static str, bool>, name: &str, on: bool) -> Result<(), String> {
    let gate = GATES.iter().find(|gate| gate.name == name);
    let gate = gate.ok_or_else(|| format!("unrecognized feature gate: {name}"))?;
    if gate.locked && on != gate.default {
        return Err(format!("cannot set feature gate {name} to {on}, feature is locked to {}", gate.default));
    }
    gates.insert(gate.name, on);
    Ok(())
}

fn set_all(gates: &mut BTreeMap<&'static str, bool>, stage: Stage, on: bool) {
    for gate in GATES.iter().filter(|gate| gate.stage == stage && !gate.locked) {
        gates.insert(gate.name, on);
    }
}

/// A boolean, as Go reads it.
pub(crate) fn switch(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}
