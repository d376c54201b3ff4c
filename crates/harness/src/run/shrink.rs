//! Compaction of the conversation in the loop (engine E10.10, E12.6): the hard state is written first, the notes are asked for like
//! any other request, so that they are recorded, counted and replayed, and what stands in for the older messages is recorded as said.

use super::RunError;
use super::driver::Loop;
use crate::context::{CompactError, Context, ContextPolicy, Summariser, SummaryFault};
use async_trait::async_trait;
use traderharness_replay::{Message, Record};

impl Loop<'_> {
    /// Replaces older messages of the view by notes. The conversation itself stays whole.
    pub(super) async fn compact(&mut self) -> Result<(), RunError> {
        self.session.hold_state()?;
        let hard_state = self.session.hard_state_text();
        let mut context = std::mem::replace(&mut self.context, Context::new(ContextPolicy::default()));
        let messages = std::mem::take(&mut self.messages);
        let made = context.compact(&messages, self, &hard_state, None).await;
        let shown = made.as_ref().is_ok_and(Option::is_some).then(|| context.handoff().map(str::to_owned)).flatten();
        self.context = context;
        self.messages = messages;
        match made {
            Ok(_) => {}
            Err(CompactError::Stop(stop)) => return Err(stop),
            // No transcript is kept here: the trajectory holds every message.
            Err(CompactError::Transcript(fault)) => return Err(RunError::Transcript { fault }),
        }
        if let Some(text) = shown {
            self.session.append(Record::Brief { role: "user".to_owned(), text })?;
        }
        Ok(())
    }
}

#[async_trait]
impl Summariser for Loop<'_> {
    type Stop = RunError;

    /// A model that cannot be asked ends the run, which can be resumed: that it failed is no fact of the recording, so going on without
    /// notes would not replay. An empty answer is one.
    async fn summarise(&mut self, messages: Vec<Message>) -> Result<String, SummaryFault<RunError>> {
        let response = self.exchange(messages, Vec::new()).await.map_err(SummaryFault::Stop)?;
        match response.message.content().map(str::trim) {
            Some(text) if !text.is_empty() => Ok(text.to_owned()),
            _ => Err(SummaryFault::Failed("the model answered with nothing".to_owned())),
        }
    }
}
