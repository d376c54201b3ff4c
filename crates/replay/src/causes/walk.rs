//! The calls of two recordings in step, scope by scope. A difference of two requests or answers is a cause only where nothing before it
//! differs; else it is counted. Where the two come back to the same conversation, comparing goes on.

use super::effect::first_record_apart;
use super::found::{Both, Found};
use super::parts::{instructions, plain, shown, tools, words};
use super::settings::Differ;
use super::spots::{Spot, Spots};
use super::track::{Answer, Asked, Track, reason};
use super::{CODE, Kind, Place, Run, Walked};
use crate::cassette::{Cassette, Scheme};
use crate::error::RecordingError;
use crate::explain::{Explanation, explain};
use crate::request::{Message, Request};
use crate::{Fingerprint, canonical, diff};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Most results of one request that are listed.
const OF_A_REQUEST: usize = 8;

/// How far one scope is.
#[derive(Debug)]
struct At {
    walked: Walked,
    /// The next call of each run.
    next: (usize, usize),
    /// The calls before the next ones asked and answered the same.
    together: bool,
    /// Where each conversation of the second run is, in order; made when the two first part.
    places: Option<BTreeMap<Fingerprint, Vec<usize>>>,
}

struct Walk<'a, 'f, 'r> {
    tracks: (Track<'a>, Track<'a>),
    spots: Option<(Spots, Spots)>,
    differ: &'f Differ,
    found: &'f mut Found<'r>,
    /// Something that was said or done differs already.
    apart: bool,
    /// Two requests differ, and a recording does not hold them.
    blind: bool,
    /// In what the surroundings of two conversations differ, where that was looked at.
    around: BTreeMap<(Fingerprint, Fingerprint), Vec<(Kind, Both)>>,
}

/// Walks all scopes of two runs; tells how far each goes.
pub(super) fn walk(
    a: Run<'_>,
    b: Run<'_>,
    differ: &Differ,
    found: &mut Found<'_>,
    notes: &mut Vec<String>,
) -> Result<Vec<Walked>, RecordingError> {
    let spots = a.trajectory.zip(b.trajectory).map(|(a, b)| (Spots::of(a), Spots::of(b)));
    let mut tracks = (Track::of(a.cassette)?, Track::of(b.cassette)?);
    let mut scopes: BTreeMap<&str, At> = BTreeMap::new();
    tracks.1.named_as(&tracks.0);
    for scope in tracks.0.scopes.keys().chain(tracks.1.scopes.keys()) {
        let requests = (tracks.0.calls(scope).len(), tracks.1.calls(scope).len());
        let walked = Walked { scope: (*scope).to_owned(), requests, ..Walked::default() };
        scopes.insert(scope, At { walked, next: (0, 0), together: true, places: None });
    }
    let mut walk = Walk { tracks, spots, differ, found, apart: false, blind: false, around: BTreeMap::new() };
    // In the order of the first run: what one agent said may be what another one was told next.
    for call in a.cassette.calls() {
        let Some(at) = scopes.get_mut(call.scope.as_str()) else { continue };
        let place = walk.tracks.0.calls(&call.scope).get(at.next.0);
        if place.is_some_and(|asked| asked.call.step == call.step) {
            walk.step(at)?;
        }
    }
    let mut walked: Vec<At> = scopes.into_values().collect();
    walk.ends(&mut walked, (a.cassette.is_sealed(), b.cassette.is_sealed()));
    // Nothing that was asked or said differs: what was kept beside it still may.
    let nothing = walk.found.is_empty() && walked.iter().all(|at| at.walked.consequences() == 0);
    if nothing && let Some((a, b)) = a.trajectory.zip(b.trajectory) {
        walk.records(a, b);
    }
    if walk.blind {
        notes.push("where the digests of two requests differ it is not known in what: a recording holds no requests".to_owned());
    }
    if walked.iter().any(|at| at.walked.came_back > 0) {
        notes.push("the runs parted and came back to the same request; comparing went on from there".to_owned());
    }
    Ok(walked.into_iter().map(|at| at.walked).collect())
}

impl<'a> Walk<'a, '_, '_> {
    fn calls(&self, scope: &str) -> (&[Asked<'a>], &[Asked<'a>]) {
        (self.tracks.0.calls(scope), self.tracks.1.calls(scope))
    }

    /// Compares the next calls of a scope, and goes on to the next that can be compared.
    fn step(&mut self, at: &mut At) -> Result<(), RecordingError> {
        let scope = at.walked.scope.clone();
        let (first, second) = self.calls(&scope);
        let (Some(a), Some(b)) = (first.get(at.next.0), second.get(at.next.1)) else {
            // The second run has no more calls: those of the first are told of at the end.
            return Ok(());
        };
        let (steps, around) = ((a.call.step, b.call.step), (a.around, b.around));
        if a.talk == b.talk { self.same_talk(at, steps, around) } else { self.other_talk(at, steps, around) }
    }

    fn same_talk(
        &mut self,
        at: &mut At,
        steps: (usize, usize),
        around: (Fingerprint, Fingerprint),
    ) -> Result<(), RecordingError> {
        let place = self.place(&at.walked.scope, at.next.0, steps.0);
        let digests = self.digests(steps);
        let same_digest = digests.is_some_and(|(a, b)| a == b);
        at.walked.together += 1;
        at.walked.same_digest += usize::from(same_digest);
        if !at.together && at.walked.parted_at.is_some() {
            at.walked.came_back += 1;
        }
        if !same_digest {
            self.around(&place, steps, around)?;
        }
        at.together = self.answers(at, &place, steps, same_digest);
        if !at.together {
            at.walked.parted_at = at.walked.parted_at.or(Some(at.next.0));
            self.apart = true;
        }
        at.next = (at.next.0 + 1, at.next.1 + 1);
        Ok(())
    }

    /// Lists what stands around a conversation and differs: model, sampling, contract, instructions, tools.
    fn around(&mut self, place: &Place, steps: (usize, usize), around: (Fingerprint, Fingerprint)) -> Result<(), RecordingError> {
        if let Some(known) = self.around.get(&around) {
            known.iter().for_each(|(kind, both)| self.found.again(*kind, both));
            return Ok(());
        }
        let Some((a, b)) = self.requests(steps)? else { return Ok(()) };
        let mut known = Vec::new();
        let (one, other) = (plain(&a), plain(&b));
        if one != other {
            for both in self.found.between(&one, &other, OF_A_REQUEST) {
                // The set-up has told it already, and not in which requests.
                if !self.found.has_field(Kind::Settings, &both.field) {
                    self.found.push(Kind::Settings, place.clone(), both.clone(), "");
                    known.push((Kind::Settings, both));
                }
            }
        }
        let (one, other) = (instructions(&a), instructions(&b));
        if one != other
            && let Some(explained) = self.explained(&one, &other)
        {
            let both = Both { field: "prompt".to_owned(), ..self.found.between_texts(&words(&one), &words(&other)) };
            let place = Place { message: explained.message, ..place.clone() };
            let why = if self.differ.world { "the words of the prompt follow from a setting that differs" } else { "" };
            self.found.push_lines(Kind::Settings, place, both.clone(), why, shown(explained));
            known.push((Kind::Settings, both));
        }
        for difference in diff::request_differences(&self.cleaned(tools(&a)), &self.cleaned(tools(&b))) {
            let name = difference.path.strip_prefix("tools[").and_then(|rest| rest.split(']').next()).map(str::to_owned);
            let (place, both) = (Place { tool: name, ..place.clone() }, Both::of(difference));
            self.found.push(Kind::ToolsOffered, place, both.clone(), "");
            known.push((Kind::ToolsOffered, both));
        }
        self.around.insert(around, known);
        Ok(())
    }

    /// Holds the answers to one conversation against each other; tells whether they say the same.
    fn answers(&mut self, at: &mut At, place: &Place, steps: (usize, usize), same: bool) -> bool {
        let (one, other) = (self.tracks.0.cassette, self.tracks.1.cassette);
        let (Some(a), Some(b)) = (one.calls().get(steps.0), other.calls().get(steps.1)) else { return true };
        let sampling = Cassette::stored(a).map(|stored| &stored.sampling);
        let (a, b) = match (Answer::of(one, a), Answer::of(other, b)) {
            (Answer::Said { message: a, rest: said }, Answer::Said { message: b, rest: said_now }) => {
                if canonical::equal(&a.0, &b.0) {
                    if same {
                        self.served(place, &said, &said_now);
                    }
                    return true;
                }
                if !same {
                    at.walked.answers += 1;
                    return false;
                }
                let why = reason(&said, &said_now, sampling);
                let both = self.found.between(&a.0, &b.0, 1).pop().unwrap_or_default().within("message");
                self.found.push(Kind::Model, place.clone(), both, why);
                return false;
            }
            (a, b) if a == b => return true,
            (a, b) => (a, b),
        };
        let told = |answer: Answer| match answer {
            Answer::Said { .. } => "answered".to_owned(),
            Answer::Failed(error) => error,
        };
        let both = self.found.between_texts(&told(a), &told(b)).within("error");
        self.found.push(Kind::Environment, place.clone(), both, "a model gave no answer, or another reason for giving none");
        false
    }

    /// Lists what a provider says of itself and its counts, where the words are the same.
    fn served(&mut self, place: &Place, a: &Map<String, Value>, b: &Map<String, Value>) {
        if a == b {
            return;
        }
        for both in self.found.between(&a.clone().into(), &b.clone().into(), OF_A_REQUEST) {
            let part = both.field.split(['.', '[']).next().unwrap_or_default().to_owned();
            let (field, why) = match part.as_str() {
                "served" => (both.field.clone(), "the provider answered with another build; the words are the same"),
                _ => (part, "the words are the same"),
            };
            self.found.push_field(Kind::Model, place.clone(), Both { field, ..both }, why);
        }
    }

    /// Two conversations that differ: why, when nothing before does, and where the two can be compared again.
    fn other_talk(
        &mut self,
        at: &mut At,
        steps: (usize, usize),
        around: (Fingerprint, Fingerprint),
    ) -> Result<(), RecordingError> {
        let scope = at.walked.scope.clone();
        if at.together {
            if around.0 != around.1 {
                self.around(&self.place(&scope, at.next.0, steps.0), steps, around)?;
            }
            self.results(at, steps)?;
        }
        at.walked.parted_at = at.walked.parted_at.or(Some(at.next.0));
        at.together = false;
        self.apart = true;
        let (first, second) = self.calls(&scope);
        // Made once: two runs may part and come together at every request.
        let places = at.places.get_or_insert_with(|| {
            let mut places: BTreeMap<Fingerprint, Vec<usize>> = BTreeMap::new();
            second.iter().enumerate().for_each(|(index, asked)| places.entry(asked.talk).or_default().push(index));
            places
        });
        let (from, due) = at.next;
        let again = first.iter().enumerate().skip(from).find_map(|(index, asked)| {
            let all = places.get(&asked.talk)?;
            let other = all.get(all.partition_point(|place| *place < due))?;
            Some((index, *other))
        });
        let to = again.unwrap_or((first.len(), second.len()));
        at.walked.following.0 += to.0 - at.next.0;
        at.walked.following.1 += to.1 - at.next.1;
        at.next = to;
        if again.is_some() {
            // The same conversation has steps of its own in each run.
            return self.step(at);
        }
        Ok(())
    }

    /// Lists the messages that differ in two requests before which nothing does.
    fn results(&mut self, at: &mut At, steps: (usize, usize)) -> Result<(), RecordingError> {
        let scope = at.walked.scope.clone();
        let place = self.place(&scope, at.next.0, steps.0);
        let Some((a, b)) = self.requests(steps)? else {
            // Without the requests nobody knows in what they differ.
            self.blind = true;
            at.walked.states += 1;
            return Ok(());
        };
        let calls = self.calls(&scope);
        let before = at.next.0.checked_sub(1).zip(at.next.1.checked_sub(1));
        let before = before.and_then(|(i, j)| Some((calls.0.get(i)?.call.step, calls.1.get(j)?.call.step)));
        let apart = (0..a.messages.len().max(b.messages.len()))
            .filter(|index| match (a.messages.get(*index), b.messages.get(*index)) {
                (Some(a), Some(b)) => !(canonical::equal(&a.0, &b.0) || (a.role() == "system" && b.role() == "system")),
                _ => true,
            })
            .take(OF_A_REQUEST);
        let mut listed = false;
        for index in apart {
            let (one, other) = (a.messages.get(index), b.messages.get(index));
            let is_result = [one, other].into_iter().flatten().all(|message| message.role() == "tool");
            // A result was given before the request, in the state of the answer that asked for it; anything else stands for the moment.
            if listed && !is_result {
                break;
            }
            let moment = before.filter(|_| is_result).unwrap_or(steps);
            if !self.same_state(moment) {
                at.walked.states += 1;
                break;
            }
            listed = true;
            self.result(at, &place, index, (one, other), (&a, &b));
            if one.is_none() || other.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn result(
        &mut self,
        at: &mut At,
        place: &Place,
        index: usize,
        (one, other): (Option<&Message>, Option<&Message>),
        (a, b): (&Request, &Request),
    ) {
        let only = |request: &Request, message: Option<&Message>| {
            // With the calls before it, so that it is known whose result it is.
            let before = request.messages.iter().take(index).cloned();
            Request { messages: before.chain(message.cloned()).collect(), ..Request::default() }
        };
        let explained = self.explained(&only(a, one), &only(b, other));
        let tool = explained.as_ref().and_then(|explained| explained.tool.clone());
        let content = |message: Option<&Message>| message.and_then(Message::content).map(str::to_owned);
        let both = match (content(one), content(other)) {
            (Some(a), Some(b)) if a != b => self.found.between_texts(&a, &b).within("content"),
            _ => {
                let value = |message: Option<&Message>| message.map_or(Value::Null, |message| message.0.clone());
                self.found.between(&value(one), &value(other), 1).pop().unwrap_or_default().within("message")
            }
        };
        let place = Place { message: Some(index), tool: tool.clone(), ..place.clone() };
        let lines = explained.map(shown).unwrap_or_default();
        let outside = tool.as_deref().is_some_and(|tool| self.is_outside(tool));
        let what = if tool.is_some() { "the same call in the same state has another result" } else { "another brief" };
        if self.differ.data {
            let also = if self.differ.world { "; settings differ too, and it may follow from those" } else { "" };
            self.found.push_lines(Kind::Data, place, both, format!("{what}, on other data{also}"), lines);
        } else if self.differ.world || self.found.has(Kind::ToolsOffered) {
            // What is set up otherwise, or offered otherwise, is told otherwise.
            at.walked.states += 1;
        } else if outside {
            let why = "code, a plug-in or a limit of this machine ended otherwise for the same call";
            self.found.push_lines(Kind::Environment, place, both, why, lines);
        } else {
            let why = format!("{what}, on the same data under the same settings");
            self.found.push_lines(Kind::Fault, place, both, why, lines);
        }
    }

    /// Lists why one run ends where the other one goes on, and counts the calls that are left.
    fn ends(&mut self, scopes: &mut [At], sealed: (bool, bool)) {
        let left = |at: &At| (at.walked.requests.0 - at.next.0, at.walked.requests.1 - at.next.1);
        let open = scopes.iter().position(|at| left(at) != (0, 0));
        let ended = self.spots.as_ref().map(|(a, b)| (a.ended.clone(), b.ended.clone()));
        let (a, b) = ended.unwrap_or_default();
        let told = |ended: Option<String>, sealed: bool| {
            ended.unwrap_or_else(|| if sealed { "completed" } else { "unfinished" }.to_owned())
        };
        let (a, b) = (told(a, sealed.0), told(b, sealed.1));
        // A recording of the Python implementation does not say whether it is whole.
        let tells = self.tracks.0.cassette.scheme() == Scheme::Whole;
        let first = tells && !self.apart && !self.differ.world && !self.differ.data && !self.found.has(Kind::ToolsOffered);
        if first && a != b {
            let both = Both { field: "status".to_owned(), a: Some(a), b: Some(b) };
            let why = "a limit, a signal or a failure ended one run where the other one went on";
            let place = open.and_then(|at| scopes.get(at)).map(|at| self.place_at(at)).unwrap_or_default();
            self.found.push(Kind::Environment, place, both, why);
        } else if first && let Some(at) = open.and_then(|at| scopes.get(at)) {
            let (a, b) = left(at);
            let text = |count: usize| Some(format!("{count} further request(s)"));
            let both = Both { field: "requests".to_owned(), a: text(a), b: text(b) };
            let why = "one run goes on where the other one ends, and nothing before it differs";
            self.found.push(Kind::Fault, self.place_at(at), both, why);
        }
        for at in scopes {
            let (a, b) = left(at);
            if (a, b) != (0, 0) {
                at.walked.parted_at = at.walked.parted_at.or(Some(at.next.0));
            }
            at.walked.following.0 += a;
            at.walked.following.1 += b;
        }
    }

    /// Lists the first record of two trajectories that differs although nothing that was asked or answered does.
    fn records(&mut self, a: &[crate::trajectory::Entry], b: &[crate::trajectory::Entry]) {
        let Some(apart) = first_record_apart(a, b) else { return };
        let outside = apart.tool.as_deref().is_some_and(|tool| self.is_outside(tool));
        let kind = if outside { Kind::Environment } else { Kind::Fault };
        let both = self.found.between(&apart.a, &apart.b, 1).pop().unwrap_or_default().within(&apart.kind);
        let place = Place { day: apart.day, point: apart.point, tool: apart.tool, ..Place::default() };
        self.found.push(kind, place, both, "every request and answer is the same, and what was kept beside them is not");
    }

    fn is_outside(&self, tool: &str) -> bool {
        let recorded = self.spots.as_ref().is_some_and(|(a, b)| a.outside.contains(tool) || b.outside.contains(tool));
        tool == CODE || recorded || self.differ.plug_ins.iter().any(|name| name == tool)
    }

    /// Whether two runs are in the same state at two requests.
    fn same_state(&self, (a, b): (usize, usize)) -> bool {
        match &self.spots {
            Some((one, other)) => one.at(a) == other.at(b),
            None => !self.apart,
        }
    }

    fn digests(&self, (a, b): (usize, usize)) -> Option<(Fingerprint, Fingerprint)> {
        let calls = (self.tracks.0.cassette.calls(), self.tracks.1.cassette.calls());
        Some((calls.0.get(a)?.request_sha256, calls.1.get(b)?.request_sha256))
    }

    fn requests(&self, (a, b): (usize, usize)) -> Result<Option<(Request, Request)>, RecordingError> {
        Ok(self.tracks.0.cassette.request(a)?.zip(self.tracks.1.cassette.request(b)?))
    }

    fn place(&self, scope: &str, request: usize, step: usize) -> Place {
        let spot: Option<&Spot> = self.spots.as_ref().and_then(|(a, _)| a.at(step));
        Place {
            scope: Some(scope.to_owned()),
            day: spot.map(|spot| spot.day),
            point: spot.map(|spot| spot.point.clone()),
            request: Some(request),
            ..Place::default()
        }
    }

    /// The place of the next call of a scope, in whichever run has one.
    fn place_at(&self, at: &At) -> Place {
        let step = self.tracks.0.calls(&at.walked.scope).get(at.next.0).map(|asked| asked.call.step);
        match step {
            Some(step) => self.place(&at.walked.scope, at.next.0, step),
            None => Place { scope: Some(at.walked.scope.clone()), request: Some(at.next.0), ..Place::default() },
        }
    }

    fn cleaned(&self, request: Request) -> Request {
        let messages = request.messages.iter().map(|message| Message(self.found.clean(&message.0))).collect();
        let tools = request.tools.iter().map(|tool| self.found.clean(tool)).collect();
        let system = request.system.map(|text| self.found.clean(&text.into()).as_str().unwrap_or_default().to_owned());
        Request { messages, tools, system, ..request }
    }

    /// The first difference of two requests with its lines, as it may be shown.
    fn explained(&self, a: &Request, b: &Request) -> Option<Explanation> {
        explain(&self.cleaned(a.clone()), &self.cleaned(b.clone()))
    }
}
