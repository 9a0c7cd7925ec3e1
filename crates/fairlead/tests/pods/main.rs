//! Pods without containers, end to end: `fairlead up` on a machine that is a network namespace, and real commands in it.

mod documents;
mod machine;
mod rollout;
mod several;
mod story;
