//! Behaviour of the house: what is admitted, what is kept, what is answered again.

mod admission;
mod authority;
mod budgets;
mod calls;
mod config;
mod faults;
pub(crate) mod fixture;
pub(crate) mod gated;
mod jobs;
mod kept;
mod kill;
mod names;
mod prune;
mod registry;
