//! Contract versions: what each tells and offers, to the byte; that a recording made under one today replays; and that what a model
//! sends under the loose ones reaches no handler that cannot take it.

mod briefs;
mod calls;
mod cards;
mod day;
mod every_tool;
mod failures;
mod frozen;
mod mutated;
mod replayed;
mod sentences;
mod shape;
mod world;
