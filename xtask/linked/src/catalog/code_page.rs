//! The table of error codes: every code of the contract, with its family and the tools that name it.

use super::Entry;
use super::tool_page::{cell, family};
use std::fmt::Write as _;
use traderharness_contract::{ErrorCode, ErrorFamily};

/// Renders the page, without preamble.
pub(crate) fn render(entries: &[Entry]) -> String {
    let mut page =
        "# Error codes\n\nThe list is closed: a failure has one of these codes, chosen by the part that failed. Three families \
        are counted apart. `retryable` is the default of a code; a failure may say otherwise.\n"
            .to_owned();
    for (kind, text) in [
        (ErrorFamily::Arguments, "The call is wrong; the model can repair it."),
        (ErrorFamily::Refused, "The call is well formed; the market, the account or a policy said no."),
        (ErrorFamily::Environment, "Dataset, sandbox or host cannot serve the call."),
    ] {
        page.push_str(&format!("\n## {}\n\n{text}\n\n", family(kind)));
        page.push_str("| code | retryable | HTTP | code of older reports | meaning | named by |\n|---|---|---|---|---|---|\n");
        for code in ErrorCode::ALL.iter().copied().filter(|code| code.family() == kind) {
            page.push_str(&row(code, entries));
        }
    }
    page
}

fn row(code: ErrorCode, entries: &[Entry]) -> String {
    let tools: Vec<String> = entries
        .iter()
        .filter(|entry| entry.definition.spec.errors.contains(&code))
        .map(|entry| format!("[{0}]({0}.md)", entry.definition.spec.name))
        .collect();
    let legacy = if code.legacy().is_empty() { String::new() } else { format!("`{}`", code.legacy()) };
    let retryable = if code.retryable() { "yes" } else { "no" };
    let mut row = String::new();
    // Writing into a string cannot fail.
    _ = writeln!(
        row,
        "| `{code}` | {retryable} | {} | {legacy} | {} | {} |",
        code.http_status(),
        cell(code.meaning()),
        tools.join(", ")
    );
    row
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn every_code_is_listed_once_and_names_its_tools() {
        let page = render(&[sample::entry()]);
        for code in ErrorCode::ALL {
            assert_eq!(page.lines().filter(|line| line.starts_with(&format!("| `{code}` | "))).count(), 1, "{code}");
        }
        let line = page.lines().find(|line| line.starts_with("| `unknown_security`")).expect("listed");
        assert!(line.contains("`security_data_unavailable`") && line.ends_with("[get_sample](get_sample.md) |"), "{line}");
    }
}
