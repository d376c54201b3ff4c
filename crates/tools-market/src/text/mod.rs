//! Text from sources: announcements and news. One tool is one file.
//!
//! Every item comes from a view, which ends strictly before now (engine E2.3); a row without a time never enters a store. Searches are
//! literal and read what the agent would read: under a mask a real name, code or date finds nothing (engine E8.5).
//!
//! | module | holds |
//! |---|---|
//! | `needle` | literal search, case and width folded, without an allocation per text |
//! | `words` | a needle over what the agent may see |
//! | `window` | from when to when a call looks |
//! | `cut` | long texts cut at field level, never inside something hidden |
//! | `items` | evidence ids, order, why a list is empty |
//! | `filings` | the list behind both announcement tools |
//! | `search` | the search behind every tool and method that lists news |
//! | `policy` | news that speak of government, regulators or policy, for code |

mod announcement_evidence;
mod announcements;
pub(crate) mod cut;
mod filings;
pub(crate) mod items;
mod needle;
pub(crate) mod news;
pub(crate) mod policy;
pub(crate) mod search;
pub(crate) mod window;
mod words;

pub(crate) use announcement_evidence::GetAnnouncementEvidence;
pub(crate) use announcements::GetAnnouncements;
pub(crate) use news::GetNews;
