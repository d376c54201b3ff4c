//! `get_announcement_evidence`: announcements to be cited in a decision card.

use super::filings::{self, Args, Output};
use crate::{MarketCtx, MarketTools};
use traderharness_contract::{Effect, ErrorCode, Group, Repeat, Tool, ToolFailure, ToolSpec};

/// The tool.
#[derive(Debug)]
pub(crate) struct GetAnnouncementEvidence;

impl Tool for GetAnnouncementEvidence {
    type Family = MarketTools;
    type Args = Args;
    type Output = Output;

    const SPEC: ToolSpec = ToolSpec {
        name: "get_announcement_evidence",
        group: Group::Text,
        effect: Effect::Read,
        repeat: Repeat::Free,
        description: "Lists the announcements of one security's company that were published before now, as evidence for a decision \
                      card: cite each by its `evidence_id`.",
        notes: &[
            "A decision card whose business fit rests on announcements needs a success of this tool on the same security; get_announcements gives the same ids but does not count for that.",
            "Order: newest first; announcements of the same second by descending evidence_id.",
            "The window is `days` calendar days before today plus today up to now; with `since` it starts at the previous decision point.",
            "`keyword` is literal text, never a pattern, and is looked for in title and type as this run shows them.",
            "A title above 300 characters is cut; `title_characters` and `title_cut` say so.",
        ],
        example: r#"{"stock_code": "SHM-000360", "days": 30}"#,
        result_summary: "`announcements` with `evidence_id` and `total`; `next_cursor` leads to older ones; an empty list has `empty_reason`.",
        errors: &[ErrorCode::UnknownSecurity, ErrorCode::DataUnavailable, ErrorCode::InvalidCursor],
        opt_in: true,
    };

    fn call(ctx: &mut MarketCtx<'_>, args: Args) -> Result<Output, ToolFailure> {
        filings::list(&ctx.view, Self::SPEC.name, &args)
    }
}
