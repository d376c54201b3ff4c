//! Behaviour of the harness: dispatch, phases, cards, scripts, the loop.

mod cards;
mod dispatch;
mod fixture;
mod phases;
mod recording;
mod scripts;
