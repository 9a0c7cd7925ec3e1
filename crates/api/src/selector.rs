//! `labelSelector` and `fieldSelector` of lists, watches and collections.

use crate::{Failure, Kind};

/// A parsed label selector.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LabelSelector {}

impl LabelSelector {
    /// Parses `app=web,tier in (a, b),!legacy`. A mistake is a 400.
    pub fn parse(_text: &str) -> Result<LabelSelector, Failure> {
        Ok(LabelSelector {})
    }
    /// Whether it selects everything.
    pub fn is_everything(&self) -> bool {
        true
    }
    /// Whether labels match; `label` gives the value of a key.
    pub fn matches<'a>(&self, _label: impl Fn(&str) -> Option<&'a str>) -> bool {
        true
    }
}

/// A parsed field selector.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FieldSelector {}

impl FieldSelector {
    /// Parses `metadata.name=web,spec.clusterIP!=None`; a field the kind does not offer is a 400.
    pub fn parse(_text: &str, _kind: &Kind) -> Result<FieldSelector, Failure> {
        Ok(FieldSelector {})
    }
    /// Whether it selects everything.
    pub fn is_everything(&self) -> bool {
        true
    }
    /// The name that `metadata.name=` asks for, if it does.
    pub fn name(&self) -> Option<&str> {
        None
    }
    /// Whether fields match; `field` gives the value of a field.
    pub fn matches<'a>(&self, _field: impl Fn(&str) -> std::borrow::Cow<'a, str>) -> bool {
        true
    }
}
