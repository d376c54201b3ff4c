//! Narrative tools: market and sectors over 1, 5 and 20 sessions, and news as evidence. Two of them answer only a few different questions
//! a day; the count belongs to the session and starts again each day (spec/tools.md T5).

pub(crate) mod budget;
pub(crate) mod news;
pub(crate) mod overview;
pub(crate) mod sector;
