//! Behaviour of the harness: dispatch, phases, cards, scripts, the loop.

mod cards;
mod dispatch;
mod fixture;
mod memory;
mod memory_peer;
mod oracle;
mod phases;
mod recording;
mod scripts;
mod watchlist;
