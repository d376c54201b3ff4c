//! A committee at a decision point: its advisors are asked at the same time, call tools that read, and each makes one statement; the memo
//! of all of them is said to the agent before its first turn (engine E10.1). Whoever is ready first, everything is recorded and run in the
//! order of the card.
//!
//! Nothing an advisor does may count for the agent: no failure of its calls stays open, no phase ends, no correction moves. An advisor
//! whose model is silent is missing from the memo and says so; it never stops a run.

use super::RunError;
use super::driver::Loop;
use super::record::Advice;
use super::taken::taken;
use super::turn::batches;
use crate::Contract;
use crate::card::Advisor;
use crate::dispatch::{BatchCall, RawArguments};
use crate::model::{Asked, ModelError, Turn, advisor_scope};
use crate::prompt::{self, Reminder};
use crate::session::Reader;
use serde_json::Value;
use traderharness_contract::parse::has_call_markup;
use traderharness_replay::{Message, Record, Request, Response, ToolCall};

/// Why the memo has no statement of an advisor.
const SILENT: &str = "its model did not answer";
const NOTHING: &str = "it said nothing";
const NO_WORDS: &str = "it called tools until its turns were used up";
const MARKUP: &str = "its text held the markup of a tool call";

/// The advisors of a card on one day, and what they did.
#[derive(Debug, Default)]
pub(super) struct Committee {
    seats: Vec<Seat>,
    pub(super) of_the_day: Advice,
    pub(super) of_the_run: Advice,
}

/// One advisor on one day.
#[derive(Debug)]
struct Seat {
    advisor: Advisor,
    scope: String,
    /// System prompt, memory, the morning, and of earlier meetings what was asked and stated.
    messages: Vec<Message>,
}

/// One advisor at one meeting.
#[derive(Debug)]
struct Speaker {
    seat: Seat,
    reader: Reader,
    /// Messages it keeps of the meeting, beside its statement.
    kept: usize,
    iteration: u32,
    /// Its last words beside calls.
    words: Option<String>,
    was_empty: bool,
    statement: Option<Result<String, &'static str>>,
}

impl Speaker {
    const fn is_last_turn(&self) -> bool {
        self.iteration + 1 >= self.seat.advisor.max_iterations
    }

    /// Ends with the last words, when there are any.
    fn end(&mut self, without_words: &'static str) {
        self.statement = Some(self.words.take().ok_or(without_words));
    }

    /// Books words without a call.
    fn said(&mut self, contract: &Contract, words: &str) {
        let last = self.is_last_turn();
        if has_call_markup(words) {
            // Such words are no answer (spec/seeds.md B12.3).
            if last {
                self.end(MARKUP);
            } else {
                self.seat.messages.push(Message::user(prompt::reminder(contract, Reminder::CallInText)));
            }
        } else if !words.is_empty() {
            self.statement = Some(Ok(words.to_owned()));
        } else if last || std::mem::replace(&mut self.was_empty, true) {
            self.end(NOTHING);
        } else {
            self.seat.messages.push(Message::user(prompt::reminder(contract, Reminder::NoStatement)));
        }
    }

    /// The seat as the next meeting of the day finds it, and what was said at this one.
    fn leave(mut self) -> (Seat, Result<String, &'static str>) {
        let statement = self.statement.unwrap_or(Err(NOTHING));
        self.seat.messages.truncate(self.kept);
        if let Ok(said) = &statement {
            self.seat.messages.push(Message::assistant(said, &[]));
        }
        (self.seat, statement)
    }
}

/// What a round asks one advisor with.
struct Question {
    speaker: usize,
    request: Request,
    turn: Turn,
}

impl Loop<'_> {
    /// Seats the advisors for a day, with what all of them know when it begins.
    pub(super) fn convene(&mut self, morning: &str) {
        self.committee.of_the_day = Advice::default();
        let card = self.session.card();
        let Some(committee) = &card.committee else { return };
        let masked = self.session.mask().config();
        let memory = self.session.memory_text();
        let seat = |advisor: &Advisor| {
            let system = prompt::advisor_under(self.session.contract(), card, committee, advisor, masked);
            let told = memory.iter().map(String::as_str).chain([morning]).map(Message::user);
            Seat {
                advisor: advisor.clone(),
                scope: advisor_scope(&card.id, &advisor.role),
                messages: std::iter::once(Message::system(system)).chain(told).collect(),
            }
        };
        self.committee.seats = committee.advisors.iter().map(seat).collect();
    }

    /// Hears the committee where it meets: its memo is the next thing that the agent is told. `news` is what the agent will be told
    /// behind it.
    pub(super) async fn hear(&mut self, news: &[&str]) -> Result<(), RunError> {
        let point = self.session.clock().point;
        let Some(memo) = self.session.card().committee.as_ref().map(|committee| committee.memo.clone()) else { return Ok(()) };
        if !memo.at.iter().any(|at| at.point() == point) {
            return Ok(());
        }
        let mut speakers: Vec<Speaker> = Vec::new();
        for mut seat in std::mem::take(&mut self.committee.seats) {
            seat.messages.extend(news.iter().copied().map(Message::user));
            seat.messages.push(Message::user(prompt::advice(self.session.contract(), point)));
            let reader = self.session.reader(&seat.advisor, &seat.scope);
            let kept = seat.messages.len();
            speakers.push(Speaker { seat, reader, kept, iteration: 0, words: None, was_empty: false, statement: None });
        }
        while speakers.iter().any(|speaker| speaker.statement.is_none()) {
            self.round(&mut speakers).await?;
        }
        let mut said = Vec::with_capacity(speakers.len());
        for speaker in speakers {
            let (seat, statement) = speaker.leave();
            let heard = statement.as_ref().map(String::as_str).map_err(|why| *why);
            self.observer.advisor(self.session, &seat.advisor.role, heard);
            let absent = u64::from(statement.is_err());
            self.committee.of_the_day.absences += absent;
            self.committee.of_the_run.absences += absent;
            said.push((seat.advisor.role.clone(), statement));
            self.committee.seats.push(seat);
        }
        let statements: Vec<prompt::Statement<'_>> = said
            .iter()
            .map(|(role, said)| prompt::Statement { role, said: said.as_ref().map(String::as_str).map_err(|why| *why) })
            .collect();
        self.tell(prompt::memo(self.session.contract(), point, &statements, memo.max_characters))
    }

    /// One turn of everybody who has not made a statement.
    async fn round(&mut self, speakers: &mut [Speaker]) -> Result<(), RunError> {
        self.check_cancelled()?;
        self.before_request()?;
        let mut questions = self.questions(speakers);
        // A round that is larger than what is left is asked as far as the budget goes; the next look at it stops the run.
        let whole = questions.len();
        questions.truncate(self.requests_left());
        let asked: Vec<Asked<'_>> = questions
            .iter()
            .map(|q| Asked { scope: &speakers[q.speaker].seat.scope, request: &q.request, turn: q.turn })
            .collect();
        let answers = self.client.complete_all(&asked).await;
        let mut answered: Vec<(usize, Turn, Vec<Value>, Response)> = Vec::with_capacity(questions.len());
        let mut answers = answers.into_iter();
        for Question { speaker, request, turn } in &questions {
            let answer = answers.next().unwrap_or_else(|| Err(ModelError::Unanswered { why: "nothing".to_owned() }));
            if let Some(response) = self.keep_answer(&mut speakers[*speaker], request, answer)? {
                answered.push((*speaker, *turn, request.tools.clone(), response));
            }
        }
        // What came after the run was asked to end is recorded and not executed (engine E10.9).
        self.check_cancelled()?;
        if questions.len() < whole {
            self.before_request()?;
        }
        for (speaker, turn, tools, response) in answered {
            self.listen(&mut speakers[speaker], &response, &tools, turn)?;
        }
        Ok(())
    }

    fn questions(&mut self, speakers: &mut [Speaker]) -> Vec<Question> {
        let (day_index, point) = (self.session.day_index(), self.session.clock().point);
        let mut questions = Vec::new();
        for (place, speaker) in speakers.iter_mut().enumerate().filter(|(_, speaker)| speaker.statement.is_none()) {
            let last = speaker.is_last_turn();
            if last {
                speaker.reader.close();
            }
            let model = speaker.seat.advisor.model.as_ref().unwrap_or(&self.settings.model);
            let mut request = Request::new(model, self.session.contract().name());
            request.sampling = self.settings.sampling.clone();
            request.tools = self.session.reading(&mut speaker.reader, |session| session.tool_definitions());
            request.messages = speaker.seat.messages.clone();
            request.messages.extend(last.then(|| Message::user(prompt::reminder(self.session.contract(), Reminder::LastAdvice))));
            questions.push(Question { speaker: place, request, turn: Turn { day_index, point, iteration: speaker.iteration } });
        }
        questions
    }

    /// Records a request and how it ended; `None` when nobody answered, which ends the advisor's part.
    fn keep_answer(
        &mut self,
        speaker: &mut Speaker,
        request: &Request,
        answer: Result<Response, ModelError>,
    ) -> Result<Option<Response>, RunError> {
        let step = self.used.requests;
        let scope = speaker.seat.scope.clone();
        self.session.append(Record::ModelRequest {
            scope: scope.clone(),
            step: step as usize,
            request_sha256: request.fingerprint(),
            messages: request.messages.len(),
        })?;
        let (silence, answer) = match answer {
            Ok(response) => (None, Ok(response)),
            Err(error) => (error.silence(), Err(error)),
        };
        let kept = match (answer, silence) {
            (Ok(response), _) => {
                self.session.append(Record::ModelResponse { scope, step: step as usize, response: response.clone() })?;
                Some(response)
            }
            (Err(error), Some(why)) => {
                self.session.append(Record::ModelFailure { scope, step: step as usize, error: why })?;
                self.observer.advisor_failed(self.session, &speaker.seat.advisor.role, &error);
                speaker.statement = Some(Err(SILENT));
                None
            }
            (Err(source), None) => return Err(RunError::Model { step, source }),
        };
        self.used.requests += 1;
        self.requests += 1;
        self.committee.of_the_day.requests += 1;
        self.committee.of_the_run.requests += 1;
        if let Some(response) = &kept {
            self.used.spending.count(request, response, self.settings.prices.as_ref());
        }
        Ok(kept)
    }

    /// Takes an answer: its words, or its calls.
    fn listen(&mut self, speaker: &mut Speaker, response: &Response, tools: &[Value], turn: Turn) -> Result<(), RunError> {
        let taken = taken(response, tools, turn);
        speaker.seat.messages.push(taken.said);
        let words = taken.words.trim();
        if taken.calls.is_empty() {
            speaker.said(self.session.contract(), words);
        } else {
            speaker.was_empty = false;
            if !words.is_empty() {
                speaker.words = Some(words.to_owned());
            }
            self.look_up(speaker, &taken.calls)?;
            if speaker.is_last_turn() {
                speaker.end(NO_WORDS);
            }
        }
        speaker.iteration += 1;
        Ok(())
    }

    /// Runs the calls of an advisor's message, the way every call goes, with the tools of that advisor alone.
    fn look_up(&mut self, speaker: &mut Speaker, calls: &[ToolCall]) -> Result<(), RunError> {
        let Speaker { seat, reader, .. } = speaker;
        let batches = self.session.reading(reader, |session| {
            session.begin_message();
            batches(calls, |name| session.is_read(name))
        });
        for batch in batches {
            self.check_cancelled()?;
            self.before_call()?;
            let left = usize::try_from(self.settings.budgets.calls_left(&self.used)).unwrap_or(usize::MAX);
            let whole = batch.len();
            let batch = &calls[batch];
            let batch = &batch[..whole.min(left)];
            let asked = batch
                .iter()
                .map(|call| BatchCall { id: &call.id, name: &call.name, arguments: RawArguments::Text(&call.arguments) })
                .collect();
            let reports = self.session.reading(reader, |session| session.call_batch(asked))?;
            for (call, report) in batch.iter().zip(reports) {
                self.used.calls += 1;
                self.committee.of_the_day.calls.count(&report);
                self.committee.of_the_run.calls.count(&report);
                self.observer.advisor_call(self.session, &seat.advisor.role, &report);
                seat.messages.push(Message::tool(&call.id, &report.text));
            }
            if batch.len() < whole {
                self.before_call()?;
            }
        }
        Ok(())
    }

    fn before_request(&self) -> Result<(), RunError> {
        Ok(self.settings.budgets.before_request(&self.used, self.settings.stopwatch.as_deref())?)
    }

    fn before_call(&self) -> Result<(), RunError> {
        Ok(self.settings.budgets.before_call(&self.used, self.settings.stopwatch.as_deref())?)
    }

    fn requests_left(&self) -> usize {
        let left = self.settings.budgets.max_requests.map_or(u64::MAX, |limit| limit.saturating_sub(self.used.requests));
        usize::try_from(left).unwrap_or(usize::MAX)
    }
}
