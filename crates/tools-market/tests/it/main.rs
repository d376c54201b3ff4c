//! Behaviour tests of the read tools, through the same definitions and handlers that a dispatcher holds.

mod call;
mod fundamentals;
mod text;
