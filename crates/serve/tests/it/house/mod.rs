//! Behaviour of the house: what is admitted, what is kept, what is answered again.

mod admission;
mod budgets;
mod calls;
mod config;
pub(crate) mod fixture;
mod jobs;
mod kept;
mod kill;
mod names;
mod registry;
