//! The research capabilities of the doors (spec/seeds.md C4 to C6): [`MarketBars`] (`market.bars`) and [`TechnicalCompute`]
//! (`technical.compute`). They are not among the 30 tools of the contract; a door registers them as extra entries.
//!
//! Everything here reads the market through the view alone. The unfinished session of the clock is never served, and a computation never
//! uses a bar that [`MarketBars`] would not show.
//!
//! [`sources`] names the tables behind each tool, for coverage and data rights; [`requires`] the tools whose input a tool needs.

mod bars;
mod compute;
mod indicators;
mod series;
mod snapshot;
mod sources;
mod window;

pub use bars::MarketBars;
pub use compute::TechnicalCompute;
pub use sources::{requires, revision_history, sources};
