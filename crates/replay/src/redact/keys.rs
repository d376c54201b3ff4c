//! Which keys hide what stands under them (spec/seeds.md B14.2). Must fail closed: a name that only looks like a credential hides.

use super::Sink;
use serde_json::Value;

/// Names that are sensitive as a whole.
const WHOLE: &[&str] = &[
    "api_key",
    "authorization",
    "content",
    "env",
    "headers",
    "passphrase",
    "password",
    "secret",
    "token",
    "account_number",
    "account_id",
    "account_no",
    "account_num",
    "brokerage_account_number",
    "brokerage_account_id",
    "account_url",
    "rhs_account_number",
    "ssn",
    "social_security_number",
    "tax_id",
    "taxpayer_id",
    "tin",
    "routing_number",
    "bank_account_number",
];

/// Parts that make a name sensitive wherever they stand.
const PARTS: &[&str] = &["api_key", "authorization", "password", "secret", "token"];

/// Letters and digits of a name, in lower case: `Account-Number` and `accountNumber` are one name.
fn fold(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Whether what stands under a key is hidden in a sink. `account_ref` is not: it is how a decision is traced to its account.
pub fn is_sensitive(key: &str, sink: Sink) -> bool {
    if sink == Sink::Result && key == "content" {
        return false;
    }
    let folded = fold(key);
    WHOLE.iter().any(|name| fold(name) == folded) || has_part(&folded)
}

fn has_part(folded: &str) -> bool {
    PARTS.iter().any(|part| folded.contains(&*fold(part)))
}

/// Whether a key counts tokens and its value is a count: hiding `max_tokens: 4096` makes a trace useless and protects nobody.
pub(super) fn is_counter(key: &str, value: &Value) -> bool {
    const COUNTS: &[&str] = &["tokencount", "tokenlimit", "tokenbudget", "tokenusage", "tokenscount", "tokensused", "tokensleft"];
    let folded = fold(key);
    let counts = folded.ends_with("tokens") || COUNTS.iter().any(|name| folded.ends_with(name));
    value.is_u64() && counts && !has_part(&folded.replace("token", ""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(key: &str, arguments: bool, result: bool) {
        assert_eq!((is_sensitive(key, Sink::Arguments), is_sensitive(key, Sink::Result)), (arguments, result), "{key}");
    }

    // spec/seeds.md B14.2, B14.3
    #[test]
    fn names_hide_by_whole_part_and_fold() {
        check("content", true, false);
        check(" Content ", true, true);
        check("secret_content", true, true);
        check("Account-Number", true, true);
        check("accountRef", false, false);
        check("account_ref", false, false);
        check("env", true, true);
        check("environment", false, false);
        check("X-API-Key", true, true);
        check("apiKeyId", true, true);
        check("max_tokens", true, true);
        check("contents", false, false);
        check("tin", true, true);
        check("tint", false, false);
    }

    #[test]
    fn only_counts_of_tokens_are_counters() {
        assert!(is_counter("max_tokens", &json!(4096)) && is_counter("token_count", &json!(0)));
        assert!(is_counter("completionTokens", &json!(7)));
        for (key, value) in [("max_tokens", json!("4096")), ("token", json!(4096)), ("max_tokens", json!(-1))] {
            assert!(!is_counter(key, &value), "{key} {value}");
        }
        assert!(!is_counter("secret_tokens", &json!(4096)) && !is_counter("token_ids", &json!([1, 2])));
    }
}
