//! The agent's memory (engine E12): what it chose to remember, what each day came to, and the environment's own record of hard state.
//!
//! Memory only grows: a record is superseded, never changed or removed. It is kept as events; whoever owns files hands in a
//! [`MemorySink`], and [`Memory::restore`] rebuilds the state from the lines. Nothing here opens a file, and nothing here rewrites the
//! agent's words: they were written in visible codes and are given back as they are, so that storing a guessed name or date and
//! reading it again tells nothing.
//!
//! | part | holds |
//! |---|---|
//! | [`event`] | the lines of a memory file |
//! | [`store`] | [`Memory`]: records, journals, what is visible and active on a day |
//! | [`restore`] | the state from lines, with the place of a broken one |
//! | [`search`] | words, scores and the order of results |
//! | [`text`] | the memory text of a prompt |
//! | [`hard_state`] | plans and active conditions as an environment record |
//! | [`remember`], [`search_memory`], [`get_memory`] | the tools |

pub mod event;
pub mod get_memory;
pub mod hard_state;
pub mod remember;
pub mod restore;
pub mod search;
pub mod search_memory;
mod shown;
pub mod store;
pub mod text;

pub use event::{MemoryEvent, MemoryKind, MemorySink, NoSink, Source};
pub use restore::{MemoryFault, Restored};
pub use shown::MemoryShown;
pub use store::{Draft, Journal, Memory, MemoryRecord, Superseded};
