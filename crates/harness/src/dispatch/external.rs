//! Step 6 of a call that a plug-in answers: ask it, or take the answer from the record; clean, mask and keep the answer before it is used.

use super::admit::Admitted;
use crate::Session;
use crate::masking::FieldMask;
use crate::plugin::{ExternalTool, PlugInAnswer, SENT};
use crate::session::{Committed, SessionError};
use serde_json::{Value, json};
use traderharness_contract::Outcome;
use traderharness_replay::{Record, RecordingError};

impl Session {
    /// Asks the plug-in at most once in the life of a run. A call with effects is kept before it goes out: when the run is interrupted
    /// before the answer is kept, nobody knows what the call did, and resuming does not send it again.
    pub(super) fn handle_external(
        &mut self,
        call_id: &str,
        external: &ExternalTool,
        admitted: &Admitted<'_>,
    ) -> Result<Outcome, SessionError> {
        let spec = external.spec();
        let mut kept = self.journal.kept_external(call_id, spec.name);
        let mut in_doubt = false;
        if !spec.effect.is_read() {
            in_doubt = kept.is_some();
            self.keep_external(call_id, spec.name, json!({ "state": SENT }))?;
            kept = if in_doubt { self.journal.kept_external(call_id, spec.name) } else { None };
        }
        let cut = external.cut();
        let answer = match kept {
            Some(outcome) => serde_json::from_value(outcome).map_err(|fault| RecordingError::Diverged {
                what: format!("the kept answer of {} is no answer of a plug-in tool: {fault}", spec.name),
            })?,
            None if in_doubt => PlugInAnswer::Unknown,
            None => {
                let cancel = self.cancel.clone();
                let asked = admitted.asked.clone();
                let answer = asked.unwrap_or_else(|| external.ask(call_id, &admitted.args, &|| cancel.is_cancelled()));
                // What a run did not wait for is no part of it: a resumed run asks again, unless the call may have had an effect.
                if let PlugInAnswer::Cancelled { sent } = answer {
                    let effect_committed = if sent && !spec.effect.is_read() { Committed::Unknown } else { Committed::No };
                    return Err(SessionError::Interrupted {
                        call_id: call_id.to_owned(),
                        tool: spec.name.to_owned(),
                        effect_committed,
                    });
                }
                let definition = &admitted.tool.definition;
                let misfit = |value: &Value| {
                    definition.validate_output(value).err().map(|i| i.first().map_or_else(String::new, |i| i.message.clone()))
                };
                let mask = FieldMask { store: &self.config.store, mask: &self.config.mask, today: self.clock.day };
                cut.clean(answer, misfit).map_texts(&|text| mask.text(text).into_owned())
            }
        };
        let outcome = serde_json::to_value(&answer).map_err(|fault| RecordingError::Diverged { what: fault.to_string() })?;
        self.keep_external(call_id, spec.name, outcome)?;
        Ok(cut.outcome(answer, spec.effect))
    }

    fn keep_external(&mut self, call_id: &str, tool: &str, outcome: Value) -> Result<(), SessionError> {
        self.append(Record::External { call_id: call_id.to_owned(), tool: tool.to_owned(), outcome })
    }
}
