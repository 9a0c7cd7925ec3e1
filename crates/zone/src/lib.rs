//! The cluster's domain as data: which records has a name, and why has it none?
