//! The failure side of the contract of every tool: which codes it gives, what each failure says, and whether a model that does exactly
//! what a correction says gets on. Bad data, wrong calls at random, and lists in pages belong to the same promise.

mod ambiguous;
mod bad_rows;
pub(crate) mod cases;
pub(crate) mod cases_account;
mod envelope;
mod follow;
mod listed;
mod pages;
pub(crate) mod world;
mod wrong_calls;
