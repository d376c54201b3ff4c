//! Gets data into a market [`Store`](traderharness_market::Store): the Parquet layout, our cache, the bundled pack, the generator and
//! the dataset check.
//!
//! It knows no tool and no clock. It invents nothing: a missing table stays missing and is reported, a value that cannot be is null,
//! and data of the generator says of itself that it is synthetic.
//!
//! ```
//! let data = traderharness_ingest::bundled()?;
//! assert_eq!(data.store.len(), 8);
//! println!("{}", data.report); // tables, ranges, faults
//! # Ok::<(), traderharness_ingest::IngestError>(())
//! ```
//!
//! What happens to the rows of a table, in order: rows without a usable code or time are left out; the rest is sorted by its key and
//! then by its values; repeated keys keep their first row; values that cannot be (infinite, prices of zero or less, a high below its
//! low) become null. Each of these is counted in the [`DatasetReport`] with examples.

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
pub mod rows;
mod source;
mod table_out;
mod tables;

pub use cache::{build_cache, load_cache, write_cache};
pub use error::IngestError;
pub use generate::{GenerateConfig, Generated, generate, generate_in_memory};
pub use load::{Dataset, LoadOptions, OnProgress, Progress, check, load, load_parts, quiet};
pub use pack::{BUNDLED_NOTICE, bundled};
pub use report::{DatasetReport, Fault, FaultKind, Severity, TableReport};
