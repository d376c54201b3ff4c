//! Gets data into a market [`Store`](traderharness_market::Store): the Parquet layout, our cache, the bundled pack, the generator and
//! the dataset check.
//!
//! It knows no tool and no clock. It invents nothing: a missing table stays missing and is reported, a value that cannot be is null,
//! and data of the generator says of itself that it is synthetic.

mod bars;
mod cache;
mod canon;
mod civil;
mod column;
mod cross;
mod decode;
mod error;
mod generate;
mod layout;
mod load;
mod metadata;
mod pack;
mod report;
mod source;
mod table_out;
mod tables;

pub use cache::{build_cache, load_cache, write_cache};
pub use error::IngestError;
pub use generate::{GenerateConfig, Generated, generate, generate_in_memory};
pub use load::{Dataset, LoadOptions, OnProgress, Progress, check, load, load_parts, quiet};
pub use pack::{BUNDLED_NOTICE, bundled};
pub use report::{DatasetReport, Fault, FaultKind, Severity, TableReport};
