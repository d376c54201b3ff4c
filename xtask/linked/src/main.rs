//! Workspace tasks that link the house: catalog, audit and bench. Started by `cargo xtask`; holds no rule of its own.

fn main() {}
