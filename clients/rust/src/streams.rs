//! Streams that continue after a lost connection, the turns of a session, and batches of specifications.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use async_stream::try_stream;
use tokio::time::{sleep, timeout};
use tokio_stream::StreamExt;
use tonic::{Code, Status, Streaming};

use crate::api::common::v1::{ActionCall, ErrorReason, ParamValue, param_value};
use crate::api::scenario::v1::{SpecItem, SpecVerdict, ValidateScenariosRequest, ValidationOptions};
use crate::api::session::v1::{
    ExportSessionRequest, Session, TakeTurnRequest, TurnEvent, WatchSessionRequest, WatchSessionResponse,
    turn_event, watch_session_response,
};
use crate::client::Client;
use crate::errors::{Error, Result};

/// Stream of values; it ends after the first error.
pub type Stream<'a, Value> = Pin<Box<dyn tokio_stream::Stream<Item = Result<Value>> + Send + 'a>>;

const ATTEMPTS: u32 = 10; // failed attempts in a row, without an event in between
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
const LONGEST_HINT: Duration = Duration::from_secs(30);
const END_PAUSE: Duration = Duration::from_secs(1); // for the server to end a stream after its last event
const ITEMS_PER_MESSAGE: usize = 256;
const BYTES_PER_MESSAGE: usize = 512 * 1024;
const MAX_SPEC_BYTES: usize = 1024 * 1024 + 1; // longer ones are rejected for their length; the rest is not sent

/// Request of a call that streams numbered events. Every such request of the contract implements it.
pub trait Streamed: Clone + Send + Sync + 'static {
    /// Response of the call.
    type Response: Numbered + Send + 'static;

    /// Sends the request once.
    fn send(
        self,
        client: &Client,
    ) -> impl Future<Output = std::result::Result<Streaming<Self::Response>, Status>> + Send;

    /// Sets a new `request_id`, if the request has that field and it is empty.
    fn identify(&mut self) {}

    /// Returns the sequence number after which the events begin.
    fn position(&self) -> i64 {
        0
    }

    /// Sets where the call continues.
    fn continue_after(&mut self, _sequence: i64, _attempt: &str) {}
}

/// Response with a sequence number.
pub trait Numbered {
    /// Returns the sequence number and the attempt that begins with this response, if it has them.
    fn number(&self) -> Option<(i64, Option<&str>)>;

    /// Returns the reason if the stream has ended early, and continues with another call.
    fn lost(&self) -> Option<&str> {
        None
    }

    /// Returns true if no event follows.
    fn is_last(&self) -> bool {
        false
    }
}

pub(crate) fn new_request_id() -> String {
    uuid::Uuid::new_v4().to_string()
}

pub(crate) fn attempt_of(event: &TurnEvent) -> Option<&str> {
    match &event.event {
        Some(turn_event::Event::Accepted(accepted)) => Some(&accepted.attempt_id),
        _ => None,
    }
}

pub(crate) fn ends_turn(event: &TurnEvent) -> bool {
    match &event.event {
        Some(turn_event::Event::Committed(_)) => true,
        Some(turn_event::Event::RuleFailed(failed)) => failed.turn_abandoned,
        _ => false,
    }
}

pub(crate) fn watched(response: &WatchSessionResponse) -> Option<(i64, Option<&str>)> {
    match response.event.as_ref()? {
        watch_session_response::Event::TurnEvent(event) => Some((event.sequence, attempt_of(event))),
        watch_session_response::Event::Rewound(rewound) => Some((rewound.sequence, None)),
        _ => None,
    }
}

pub(crate) fn lost_watch(response: &WatchSessionResponse) -> Option<&str> {
    match &response.event {
        Some(watch_session_response::Event::Closed(closed)) => Some(closed.reason.as_str())
            .filter(|reason| matches!(*reason, "SERVER_SHUTTING_DOWN" | "TOO_SLOW")),
        _ => None,
    }
}

impl Client {
    /// Plays the next turn of a session, and yields its events as they happen. The last one is `committed`, or
    /// `rule_failed` if the turn was abandoned.
    ///
    /// After a lost connection the turn continues with the same request id, so it is played once, and each event is
    /// yielded once. If the first attempt had no effect, `accepted` follows again: discard the earlier events of the
    /// turn.
    ///
    /// The session id and the expected turn are set, and an empty request id and point of view. The committed event
    /// updates the session: turn, status, hashes and legal actions. `state` is cleared, because events have no state.
    #[must_use]
    pub fn play<'a>(&'a self, session: &'a mut Session, mut turn: TakeTurnRequest) -> Stream<'a, TurnEvent> {
        turn.session_id.clone_from(&session.session_id);
        turn.expected_turn = session.turn + 1;
        if turn.pov_entity_id.is_empty() {
            turn.pov_entity_id.clone_from(&session.pov_entity_id);
        }
        Box::pin(try_stream! {
            let mut responses = self.follow(turn);
            while let Some(response) = responses.next().await {
                if let Some(event) = response?.event {
                    update(session, &event);
                    yield event;
                }
            }
        })
    }

    /// Follows a session: recorded events first, then live events, without gaps, over lost connections and restarts of
    /// the server. It ends with `closed` when the run has ended or the session was deleted.
    #[must_use]
    pub fn watch(&self, request: WatchSessionRequest) -> Stream<'_, WatchSessionResponse> {
        self.follow(request)
    }

    /// Yields the responses of a call that streams numbered events, and continues it after a lost connection, without
    /// repetitions. Use it for long work, whose responses include its progress: `CompileScenarioRequest`,
    /// `GenerateScenarioRequest`, `GenerateTestsRequest`, `RunAgentRequest`, …
    ///
    /// If the server has no record of the work, it starts again, with sequence number 1.
    #[must_use]
    pub fn follow<Request: Streamed>(&self, request: Request) -> Stream<'_, Request::Response> {
        Box::pin(try_stream! {
            let mut cursor = Cursor::new(request);
            'calls: loop {
                let failure = match cursor.request.clone().send(self).await {
                    Err(status) => status,
                    Ok(mut stream) => loop {
                        let response = match stream.message().await {
                            Ok(Some(response)) => response,
                            Ok(None) => break 'calls,
                            Err(status) => break status,
                        };
                        if let Some(reason) = response.lost() {
                            break Status::unavailable(format!("server ended the stream: {reason}"));
                        }
                        if !cursor.advance(&response) {
                            continue;
                        }
                        if response.is_last() {
                            // The turn is stored; the status of the call changes nothing.
                            let _ = timeout(END_PAUSE, stream.message()).await;
                            yield response;
                            break 'calls;
                        }
                        yield response;
                    },
                };
                let pause = cursor.pause_after(failure.into())?;
                sleep(pause).await;
            }
        })
    }

    /// Validates specifications over one stream, and yields a verdict on each, in any order. Documents are read only as
    /// fast as the server validates them. A lost connection ends the stream with an error.
    pub fn validate(
        &self,
        documents: impl tokio_stream::Stream<Item = SpecItem> + Send + 'static,
        options: Option<ValidationOptions>,
    ) -> Stream<'_, SpecVerdict> {
        Box::pin(try_stream! {
            let mut stream = self.scenarios().validate_scenarios(messages(documents, options)).await?.into_inner();
            while let Some(response) = stream.message().await? {
                for verdict in response.verdicts {
                    yield verdict;
                }
            }
        })
    }

    /// Returns a session as a bundle, for [`crate::verify_transcript`], `peripety replay` and `ImportSession`.
    ///
    /// # Errors
    ///
    /// The call failed.
    pub async fn export(&self, session_id: impl Into<String>) -> Result<Vec<u8>> {
        let mut bundle = Vec::new();
        let request = ExportSessionRequest { session_id: session_id.into(), ..Default::default() };
        let mut chunks = self.follow(request);
        while let Some(response) = chunks.next().await {
            bundle.extend(response?.chunk);
        }
        Ok(bundle)
    }
}

/// Packs documents into few messages.
fn messages(
    documents: impl tokio_stream::Stream<Item = SpecItem> + Send + 'static,
    options: Option<ValidationOptions>,
) -> impl tokio_stream::Stream<Item = ValidateScenariosRequest> + Send + 'static {
    async_stream::stream! {
        let mut documents = Box::pin(documents);
        let (mut message, mut size) = (ValidateScenariosRequest { options, items: Vec::new() }, 0);
        while let Some(mut document) = documents.next().await {
            document.spec.truncate(MAX_SPEC_BYTES);
            size += document.spec.len();
            message.items.push(document);
            if message.items.len() == ITEMS_PER_MESSAGE || size >= BYTES_PER_MESSAGE {
                yield std::mem::take(&mut message);
                size = 0;
            }
        }
        if !message.items.is_empty() {
            yield message;
        }
    }
}

/// Position in a stream of numbered events, and the request that continues there.
struct Cursor<Request> {
    request: Request,
    last: i64,
    attempt: String, // of the turn that the last event belongs to
    failures: u32,
}

impl<Request: Streamed> Cursor<Request> {
    fn new(mut request: Request) -> Self {
        request.identify();
        Self { last: request.position(), request, attempt: String::new(), failures: 0 }
    }

    /// Records a response, and returns true if it is not a repetition.
    fn advance(&mut self, response: &Request::Response) -> bool {
        self.failures = 0;
        let Some((sequence, attempt)) = response.number() else { return true };
        let is_same = attempt.is_none_or(|attempt| attempt == self.attempt);
        if sequence <= self.last && is_same {
            return false;
        }
        self.last = sequence;
        if let Some(attempt) = attempt {
            self.attempt = attempt.into();
        }
        true
    }

    /// Prepares the request that continues, and returns the time to wait before it; the error, if repeating the call
    /// does not help or has not helped.
    fn pause_after(&mut self, error: Error) -> Result<Duration> {
        self.failures += 1;
        let is_forgotten = error.reason == ErrorReason::WorkNotFound && self.last > 0;
        let hint = error.retry_after.unwrap_or_default();
        let is_busy = error.code == Code::ResourceExhausted && !hint.is_zero() && hint <= LONGEST_HINT;
        if self.failures >= ATTEMPTS || !(error.is_lost_connection() || is_busy || is_forgotten) {
            return Err(error);
        }
        if is_forgotten {
            self.last = 0; // the unfinished work is lost, and starts again from its first event
        }
        self.request.continue_after(self.last, &self.attempt);
        let longest = LONGEST_PAUSE.min(FIRST_PAUSE * 2_u32.pow(self.failures - 1));
        Ok(hint.max(longest.mul_f64(0.5 + fastrand::f64() / 2.0)))
    }
}

/// Advances a session by the committed event of its next turn.
fn update(session: &mut Session, event: &TurnEvent) {
    let Some(turn_event::Event::Committed(end)) = &event.event else { return };
    session.turn = event.turn;
    session.last_sequence = event.sequence;
    session.state.clear();
    session.state_hash.clone_from(&end.state_hash);
    session.chain_hash.clone_from(&end.chain_hash);
    session.status.clone_from(&end.status);
    session.legal_actions.clone_from(&end.legal_actions);
    session.next_seat_id.clone_from(&end.next_seat_id);
    session.update_time = end.commit_time;
}

/// Returns an action with its parameters, such as `action("rest", [("hours", 2.0.into())])`.
pub fn action<'a>(id: &str, params: impl IntoIterator<Item = (&'a str, ParamValue)>) -> ActionCall {
    let params = params.into_iter().map(|(name, value)| (name.into(), value)).collect();
    ActionCall { action_id: id.into(), params }
}

impl From<f64> for ParamValue {
    fn from(value: f64) -> Self {
        Self { kind: Some(param_value::Kind::Number(value)) }
    }
}

impl From<&str> for ParamValue {
    fn from(value: &str) -> Self {
        Self { kind: Some(param_value::Kind::Text(value.into())) }
    }
}

impl From<bool> for ParamValue {
    fn from(value: bool) -> Self {
        Self { kind: Some(param_value::Kind::Flag(value)) }
    }
}

/// Reads a stream to its end, and returns its last value: the result of long work, or a committed turn.
///
/// # Errors
///
/// The error of the stream, or an error if the stream had no value.
pub async fn last<Value>(mut stream: Stream<'_, Value>) -> Result<Value> {
    let mut found = None;
    while let Some(value) = stream.next().await {
        found = Some(value?);
    }
    found.ok_or_else(|| Error::new(Code::Internal, "the stream had no value; report this"))
}
