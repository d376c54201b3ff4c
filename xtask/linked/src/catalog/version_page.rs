//! The page of contract versions: every behaviour flag by number, which versions have it, and what a failed call looks like under each.

use super::tool_page::cell;
use serde_json::{Value, json};
use std::fmt::Write as _;
use traderharness_contract::version::legacy::{Call, render as rendered};
use traderharness_contract::version::{Behaviour, Version};
use traderharness_contract::{ErrorCode, Outcome, ToolFailure};

/// Renders the page, without preamble.
pub(crate) fn render() -> String {
    let heads: Vec<&str> = Version::ALL.iter().map(|version| version.as_str()).collect();
    let mut page = format!(
        "# Contract versions\n\nWhat the versions are for, and how to choose one: [running.md](../running.md#contract-versions). A recording holds the \
         numbers of its flags as `behaviour_flags` in the first line of the cassette.\n\n## Behaviour flags\n\n| number | does | {} |\n|---|---|{}\n",
        heads.join(" | "),
        "---|".repeat(heads.len())
    );
    for flag in Behaviour::ALL.iter().copied() {
        let has = Version::ALL.map(|version| if version.behaviours().has(flag) { "yes" } else { "" });
        // Writing into a string cannot fail.
        _ = writeln!(page, "| {} | {} | {} |", flag.number(), cell(flag.describes()), has.join(" | "));
    }
    page.push_str(
        "\n## A failed call\n\nUnder v1 and v2 a failure is `error` alone, after `success: false` where the tool changes something. v3 and v4 are the same, \
         and failures of `place_order` and `manage_conditional_order` carry `error_code`, faulty arguments too: the code as it stands in [codes.md](codes.md), \
         no `retryable` and no `correction`. `execute_code` fails as `error` alone under all four, behind `stdout` where the code had printed something. \
         v5 has the full envelope for every tool. The same failures under each:\n\n",
    );
    page.push_str("| version | `get_kline` | `place_order` |\n|---|---|---|\n");
    for version in Version::ALL {
        let read = shown(version, "get_kline", true, ErrorCode::UnknownSecurity, "The code is not known.");
        let order = shown(version, "place_order", false, ErrorCode::InvalidLot, "Not a whole lot.");
        _ = writeln!(page, "| {} | `{read}` | `{order}` |", version.as_str());
    }
    page
}

/// A failed call as a model sees it under a version.
fn shown(version: Version, tool: &str, read_only: bool, code: ErrorCode, message: &str) -> Value {
    let outcome = Outcome::Failed(ToolFailure::new(code, message, "Say what to do."));
    let (example, received) = (json!({}), json!({}));
    let call = Call { tool, read_only, example: &example, received: &received };
    rendered(&outcome, &call, &version.behaviours())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flag_has_its_row_and_order_errors_have_a_code_from_v3_on() {
        let page = render();
        for flag in Behaviour::ALL {
            let row = format!("| {} | {} | ", flag.number(), flag.describes());
            assert_eq!(page.lines().filter(|line| line.starts_with(&row)).count(), 1, "{row}");
        }
        let row = |version: &str| page.lines().find(|line| line.starts_with(&format!("| {version} | `"))).expect("a row");
        assert!(!row("v2").contains("error_code"));
        assert_eq!(row("v3").matches("error_code").count(), 1, "{}", row("v3"));
        assert!(row("v3").contains("\"error_code\":\"invalid_lot\""));
        assert_eq!(row("v5").matches("error_code").count(), 2);
    }
}
