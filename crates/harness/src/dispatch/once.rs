//! The repeat guard of a run (spec/seeds.md B7, D6). It is armed when a call is admitted, not when it succeeds: two equal calls of one
//! message, and a call that follows one whose outcome nobody knows, must not both run.

use serde_json::Value;
use std::collections::BTreeMap;
use traderharness_contract::json::{canonical, text};
use traderharness_contract::{ErrorCode, Outcome, ToolFailure};

/// What became of a call that may run once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It was admitted and its answer has not come, or does not say what was done.
    Unknown,
    /// It succeeded.
    Done,
}

/// Which call: tool, and idempotency key or arguments.
pub(crate) type Key = (String, String);

#[derive(Debug, Clone)]
struct Armed {
    state: State,
    arguments: String,
}

/// Calls of the run that may not run again.
#[derive(Debug, Clone, Default)]
pub(crate) struct OncePerRun(BTreeMap<Key, Armed>);

impl OncePerRun {
    /// Arms the guard for a call, or says what the call is answered instead of being run.
    pub(super) fn arm(&mut self, tool: &str, args: &Value) -> Result<Key, Outcome> {
        let arguments = text(&canonical(args));
        let given = args.get("idempotency_key").and_then(Value::as_str);
        // The prefix keeps a key from being taken for an arguments text.
        let by = given.map_or_else(|| format!("arguments {arguments}"), |key| format!("key {key}"));
        let key = (tool.to_owned(), by);
        match self.0.get(&key) {
            None => {
                self.0.insert(key.clone(), Armed { state: State::Unknown, arguments });
                Ok(key)
            }
            Some(armed) if armed.arguments != arguments => Err(Outcome::Failed(ToolFailure::new(
                ErrorCode::IdempotencyConflict,
                format!("{tool} was called under this idempotency_key before, with other arguments; it was not run."),
                "Use the earlier result, or a new idempotency_key for a new call.",
            ))),
            Some(Armed { state: State::Done, .. }) => Err(Outcome::Skipped {
                reason: format!(
                    "An equal {tool} call already succeeded in this run; it was not run again. Use its earlier result."
                ),
            }),
            Some(Armed { state: State::Unknown, .. }) => Err(Outcome::Failed(
                ToolFailure::new(
                    ErrorCode::DuplicateCall,
                    format!("An equal {tool} call was made before and what it did is not known; it was not run again."),
                    "Find out by another tool what the first call did; do not repeat it.",
                )
                .with("effect_committed", "unknown"),
            )),
        }
    }

    /// Books what became of an armed call: a success stays armed, an unknown effect too, and a failure without effect lets it come again.
    pub(super) fn settle(&mut self, key: &Key, outcome: &Outcome) {
        match outcome.failure() {
            None => {
                if let Some(armed) = self.0.get_mut(key) {
                    armed.state = State::Done;
                }
            }
            Some(failure) if failure.correction.get("effect_committed").is_some_and(|effect| effect == "unknown") => {}
            Some(_) => {
                self.0.remove(key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use traderharness_contract::ErrorCode;

    fn failed(unknown: bool) -> Outcome {
        let failure = ToolFailure::new(ErrorCode::ExternalToolFailed, "It failed.", "Go on.");
        Outcome::Failed(if unknown { failure.with("effect_committed", "unknown") } else { failure })
    }

    // spec/seeds.md B7: armed at admission, a plain failure disarms, an unknown one does not
    #[test]
    fn a_call_is_armed_when_it_is_admitted_and_stays_so_unless_it_did_nothing() {
        let mut once = OncePerRun::default();
        let (a, b) = (json!({"x": 1, "y": 2}), json!({"y": 2, "x": 1}));
        let key = once.arm("send", &a).unwrap();
        assert!(matches!(once.arm("send", &b), Err(Outcome::Failed(f)) if f.code == ErrorCode::DuplicateCall));
        once.settle(&key, &failed(false));
        let key = once.arm("send", &b).unwrap();
        once.settle(&key, &failed(true));
        assert!(matches!(once.arm("send", &a), Err(Outcome::Failed(_))));
        let other = once.arm("mail", &a).unwrap();
        once.settle(&other, &Outcome::answered(json!({})));
        assert!(matches!(once.arm("mail", &b), Err(Outcome::Skipped { .. })));
        assert!(once.arm("mail", &json!({"x": 2})).is_ok());
    }

    // spec/seeds.md B7 OURS: the key is (tool, idempotency key)
    #[test]
    fn one_key_is_one_call_whatever_its_words() {
        let mut once = OncePerRun::default();
        let call = |text: &str| json!({"idempotency_key": "k1", "text": text});
        let key = once.arm("send", &call("a")).unwrap();
        once.settle(&key, &Outcome::answered(json!({})));
        assert!(matches!(once.arm("send", &call("a")), Err(Outcome::Skipped { .. })));
        assert!(matches!(once.arm("send", &call("b")), Err(Outcome::Failed(f)) if f.code == ErrorCode::IdempotencyConflict));
    }
}
