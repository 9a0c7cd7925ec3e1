//! What the node proxy shows of itself besides metrics: its configuration, its options, how long it runs.

use serde_json::Value;

/// What was configured, for people who look.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pages {
    /// A KubeProxyConfiguration, for `/configz`.
    pub configuration: Value,
    /// Every option and its value, by name, for `/flagz`.
    pub flags: Vec<(String, String)>,
}
