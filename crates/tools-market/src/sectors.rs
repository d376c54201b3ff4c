//! Sectors: finding one by the name an agent wrote, and what its members did. A sector is the top level of the industry label.

use crate::features::{Facts, Stock};
use crate::number::Seen;
use crate::page;
use traderharness_contract::{ErrorCode, Reason, ToolFailure};
use traderharness_market::View;

/// Sectors with fewer members that have a change are left out of rankings.
pub(crate) const MIN_MEMBERS: usize = 3;
/// Below this a change counts as none: the noise of float arithmetic on equal prices.
pub(crate) const FLAT: f64 = 1e-9;
/// Names of one page in a failure.
const NAMES: usize = 60;

/// The sector of an exact name or of the only name with this prefix.
///
/// # Errors
/// [`ErrorCode::DataUnavailable`] without a table of companies; [`ErrorCode::SectorNotFound`] with the closest names and the list of
/// all, page by page; [`ErrorCode::InvalidCursor`].
pub(crate) fn find(view: &View<'_>, facts: &Facts, asked: &str, cursor: Option<&str>) -> Result<usize, ToolFailure> {
    if !facts.has_sectors || facts.sectors.is_empty() {
        return Err(ToolFailure::new(
            ErrorCode::DataUnavailable,
            "The dataset has no industries, so there are no sectors.",
            "Use screen_stocks or get_market_overview instead.",
        ));
    }
    let names: Vec<&str> = facts.sectors.iter().map(|s| s.name.as_str()).collect();
    // A cursor that is none is told even when the name is right: nothing of a call is passed over in silence.
    let page = page::page(view, "sector_names", cursor, names.clone(), NAMES)?;
    let wanted = asked.trim();
    if let Ok(found) = facts.sectors.binary_search_by(|s| s.name.as_str().cmp(wanted)) {
        return Ok(found);
    }
    let starting = |text: &str| -> Vec<usize> {
        let with = |i: &usize| facts.sectors[*i].name.starts_with(text);
        (0..facts.sectors.len()).filter(with).collect()
    };
    let candidates = if wanted.is_empty() { Vec::new() } else { starting(wanted) };
    if let [only] = candidates[..] {
        return Ok(only);
    }
    let closest = if candidates.is_empty() { closest(&names, wanted) } else { candidates.iter().map(|i| names[*i]).collect() };
    let message = if candidates.is_empty() { "No sector has this name." } else { "More than one sector starts with this text." };
    Err(ToolFailure::new(
        ErrorCode::SectorNotFound,
        message,
        "Repeat the call with one name of correction.sectors, written exactly; correction.closest holds the likeliest ones.",
    )
    .with("closest", closest.into_iter().take(5).collect::<Vec<_>>())
    .with("sectors", page.records)
    .with("total_sectors", page.total)
    .with("next_cursor", page.next_cursor))
}

/// Names that share most characters with the text, best first; ties by name.
fn closest<'n>(names: &[&'n str], text: &str) -> Vec<&'n str> {
    let shared = |name: &str| {
        let contained = usize::from(!text.is_empty() && (name.contains(text) || text.contains(name)));
        (contained * 1000) + name.chars().filter(|c| text.contains(*c)).count()
    };
    let mut scored: Vec<(usize, &str)> = names.iter().map(|n| (shared(n), *n)).filter(|(score, _)| *score > 0).collect();
    scored.sort_by(|a, b| (b.0, a.1).cmp(&(a.0, b.1)));
    scored.into_iter().map(|(_, name)| name).take(5).collect()
}

/// What the members of one sector did. Unrounded.
#[derive(Debug, Clone)]
pub(crate) struct Tally {
    /// Members with a change over the previous session.
    pub(crate) count: usize,
    /// Mean change per horizon, percent.
    pub(crate) change: [Seen<f64>; 3],
    /// Share of rising members per horizon, percent.
    pub(crate) up_ratio: [Seen<f64>; 3],
}

/// Means over the given stocks, one vote each; stocks without a change of a horizon do not vote in it.
pub(crate) fn tally<'s>(stocks: impl Iterator<Item = &'s Stock> + Clone) -> Tally {
    let mut out = Tally {
        count: stocks.clone().filter(|s| s.change[0].is_ok()).count(),
        change: [Err(Reason::InsufficientHistory); 3],
        up_ratio: [Err(Reason::InsufficientHistory); 3],
    };
    for h in 0..3 {
        let (mut n, mut sum, mut up) = (0_usize, 0.0, 0_usize);
        for change in stocks.clone().filter_map(|s| s.change[h].ok()) {
            n += 1;
            sum += change;
            up += usize::from(change > FLAT);
        }
        if n > 0 {
            out.change[h] = Ok(sum / n as f64);
            out.up_ratio[h] = Ok(up as f64 / n as f64 * 100.0);
        }
    }
    out
}

/// Positions of the sectors that are large enough to be ranked, and how many are not.
pub(crate) fn ranked(facts: &Facts) -> (Vec<(usize, Tally)>, usize) {
    let all: Vec<(usize, Tally)> =
        facts.sectors.iter().enumerate().map(|(i, s)| (i, tally(s.members.iter().map(|m| &facts.stocks[*m])))).collect();
    let total = all.len();
    let large: Vec<(usize, Tally)> = all.into_iter().filter(|(_, t)| t.count >= MIN_MEMBERS).collect();
    let small = total - large.len();
    (large, small)
}

/// How many stocks rose, fell, stayed, had no change although they traded, or were suspended on the previous session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Breadth {
    pub(crate) up: usize,
    pub(crate) down: usize,
    pub(crate) flat: usize,
    pub(crate) unknown: usize,
    pub(crate) suspended: usize,
}

/// Breadth of the given stocks.
pub(crate) fn breadth<'s>(stocks: impl Iterator<Item = &'s Stock>) -> Breadth {
    let mut out = Breadth::default();
    for stock in stocks.filter(|s| s.bars > 0) {
        match stock.change[0] {
            _ if !stock.traded => out.suspended += 1,
            Ok(change) if change > FLAT => out.up += 1,
            Ok(change) if change < -FLAT => out.down += 1,
            Ok(_) => out.flat += 1,
            Err(_) => out.unknown += 1,
        }
    }
    out
}

/// Descending by value, missing values last.
pub(crate) fn descending(a: Seen<f64>, b: Seen<f64>) -> std::cmp::Ordering {
    match (a, b) {
        (Ok(a), Ok(b)) => b.total_cmp(&a),
        (Ok(_), Err(_)) => std::cmp::Ordering::Less,
        (Err(_), Ok(_)) => std::cmp::Ordering::Greater,
        (Err(_), Err(_)) => std::cmp::Ordering::Equal,
    }
}

/// Ascending by value, missing values last.
pub(crate) fn ascending(a: Seen<f64>, b: Seen<f64>) -> std::cmp::Ordering {
    descending(a.map(|v| -v), b.map(|v| -v))
}
