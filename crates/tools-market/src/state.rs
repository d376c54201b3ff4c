//! What a session keeps for its read tools between calls. Answers live for one clock; facts made of rows before the day live for that
//! day. Nothing here knows more than the view showed when it was made.
//!
//! One state belongs to one session: one store, one mask. Handing it to another session's view would mix two markets.

use crate::features::Facts;
use crate::market::{overview, sector};
use crate::narrative::budget::Asked;
use crate::narrative::{overview as narrative_overview, sector as narrative_sector};
use crate::screening::behavior::Behaviors;
use crate::screening::{cycle, stocks};
use std::collections::BTreeSet;
use std::sync::Arc;
use traderharness_market::{Clock, Day, SecId, View};

/// State of a session's read tools.
#[derive(Debug, Default)]
pub struct MarketState {
    clock: Option<Clock>,
    day: Option<Day>,
    pub(crate) tick: Tick,
    pub(crate) today: Today,
}

/// What was computed at this clock.
#[derive(Debug, Default)]
pub(crate) struct Tick {
    pub(crate) overview: Memo<(), overview::Output>,
    pub(crate) sector: Memo<sector::Args, sector::Output>,
    pub(crate) screen: Memo<stocks::Args, stocks::Output>,
    pub(crate) cycle: Memo<cycle::Args, cycle::Output>,
    pub(crate) narrative_overview: Memo<(), narrative_overview::Output>,
    /// By position of the sector.
    pub(crate) narrative_sector: Memo<usize, narrative_sector::Output>,
}

/// What belongs to this day.
#[derive(Debug, Default)]
pub(crate) struct Today {
    /// Made of rows before the day alone, so it is the same at every decision point of it.
    facts: Option<Arc<Facts>>,
    /// As `facts`.
    behaviors: Option<Arc<Behaviors>>,
    /// Securities whose company facts were already given.
    pub(crate) described: BTreeSet<SecId>,
    /// Sectors of get_narrative_sector_summary.
    pub(crate) sectors: Asked,
    /// Searches of get_narrative_news.
    pub(crate) searches: Asked,
}

/// Answers of one tool at one clock, by arguments.
#[derive(Debug)]
pub(crate) struct Memo<A, O>(Vec<(A, O)>);

impl<A, O> Default for Memo<A, O> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// More different questions of one tool at one clock than any agent asks; the oldest answer makes room.
const ANSWERS: usize = 32;

impl<A: PartialEq, O: Clone> Memo<A, O> {
    pub(crate) fn get(&self, args: &A) -> Option<O> {
        self.0.iter().find(|(a, _)| a == args).map(|(_, o)| o.clone())
    }

    pub(crate) fn put(&mut self, args: A, output: &O) {
        if self.0.len() == ANSWERS {
            self.0.remove(0);
        }
        self.0.push((args, output.clone()));
    }
}

impl MarketState {
    /// Drops what belongs to another clock or day. Every tool that reads the state calls this first.
    pub(crate) fn at(&mut self, view: &View<'_>) -> &mut Self {
        let clock = view.clock();
        if self.clock != Some(clock) {
            self.clock = Some(clock);
            self.tick = Tick::default();
        }
        if self.day != Some(clock.day) {
            self.day = Some(clock.day);
            self.today = Today::default();
        }
        self
    }

    /// Runs something that may ask budgeted tools only what they have answered today. Nothing it asks changes a budget, so it may be run
    /// again, or not at all, without another answer of any tool.
    pub fn without_new_questions<T>(&mut self, view: &View<'_>, run: impl FnOnce(&mut Self) -> T) -> T {
        self.close(view, true);
        let out = run(self);
        self.close(view, false);
        out
    }

    fn close(&mut self, view: &View<'_>, closed: bool) {
        let today = &mut self.at(view).today;
        today.sectors.closed = closed;
        today.searches.closed = closed;
    }

    /// The market before this day, computed on the day's first question.
    pub(crate) fn facts(&mut self, view: &View<'_>) -> Arc<Facts> {
        Arc::clone(self.at(view).today.facts.get_or_insert_with(|| Arc::new(Facts::of(view))))
    }

    /// Behavioural features before this day, computed on the day's first question.
    pub(crate) fn behaviors(&mut self, view: &View<'_>) -> Arc<Behaviors> {
        Arc::clone(self.at(view).today.behaviors.get_or_insert_with(|| Arc::new(Behaviors::of(view))))
    }
}
