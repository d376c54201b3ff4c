//! Workspace-level tests: contracts as snapshots, point-in-time poison, determinism.

mod battery;
mod contracts;
mod differential;
mod poison;
