//! Every call of a stub: its token, its deadline, its request id and its retries, as the service config defines them.

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Full};
use tokio::time::{Instant, Sleep, sleep, sleep_until, timeout_at};
use tonic::body::Body;
use tonic::{Code, Status};
use tower_service::Service;

use crate::api::methods::METHODS;

pub(crate) type TokenSource = Arc<dyn Fn() -> String + Send + Sync>;

const ATTEMPTS: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Service below the stubs, over a channel.
#[derive(Clone)]
pub struct Calls<Inner> {
    channel: Inner,
    token: Option<TokenSource>,
}

impl<Inner> fmt::Debug for Calls<Inner> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Calls").field("token", &self.token.is_some()).finish_non_exhaustive()
    }
}

impl<Inner> Calls<Inner> {
    pub(crate) fn new(channel: Inner, token: Option<TokenSource>) -> Self {
        Self { channel, token }
    }
}

type Reply = Result<Response<Body>, Status>;

impl<Inner> Service<Request<Body>> for Calls<Inner>
where
    Inner: Service<Request<Body>, Response = Response<Body>> + Clone + Send + 'static,
    Inner::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    Inner::Future: Send,
{
    type Response = Response<Body>;
    type Error = Status;
    type Future = Pin<Box<dyn Future<Output = Reply> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(())) // each attempt waits for the channel
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (channel, token) = (self.channel.clone(), self.token.clone());
        Box::pin(async move {
            let (mut head, body) = request.into_parts();
            if let Some(token) = token {
                let value = HeaderValue::try_from(format!("Bearer {}", token()));
                let value = value
                    .map_err(|_| Status::invalid_argument("token: has characters that no header can have"))?;
                head.headers.insert("authorization", value);
            }
            let method = METHODS.iter().find(|(path, ..)| *path == head.uri.path());
            let (_, seconds, id_field, is_streamed) = *method.unwrap_or(&("", None, None, true));
            let own = timeout_of(&head.headers);
            let limit = seconds.map(Duration::from_secs).into_iter().chain(own).min();
            let deadline = limit.map(|limit| Instant::now() + limit);
            if is_streamed {
                return attempt(channel, Request::from_parts(head, body), deadline).await;
            }
            let sent = with_request_id(body.collect().await?.to_bytes(), id_field);
            for number in 1.. {
                let mut request = Request::new(Body::new(
                    Full::new(sent.clone()).map_err(|never: Infallible| match never {}),
                ));
                *request.uri_mut() = head.uri.clone();
                *request.method_mut() = head.method.clone();
                *request.version_mut() = head.version;
                *request.headers_mut() = head.headers.clone();
                *request.extensions_mut() = head.extensions.clone();
                let reply = attempt(channel.clone(), request, deadline).await;
                let Some(pause) = pause_after(&reply, number) else { return reply };
                if deadline.is_some_and(|deadline| Instant::now() + pause >= deadline) {
                    return reply;
                }
                sleep(pause).await;
            }
            unreachable!()
        })
    }
}

/// Sends a request once, with the time that is left.
async fn attempt<Inner>(mut channel: Inner, mut request: Request<Body>, deadline: Option<Instant>) -> Reply
where
    Inner: Service<Request<Body>, Response = Response<Body>>,
    Inner::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let Some(deadline) = deadline else { return send(&mut channel, request).await };
    let left = deadline.saturating_duration_since(Instant::now()).as_millis().max(1);
    if let Ok(left) = HeaderValue::try_from(format!("{}m", left.min(99_999_999))) {
        request.headers_mut().insert("grpc-timeout", left);
    }
    let reply =
        timeout_at(deadline, send(&mut channel, request)).await.unwrap_or_else(|_| Err(too_late()))?;
    Ok(reply.map(|body| Body::new(Timed { body, end: Box::pin(sleep_until(deadline)) })))
}

async fn send<Inner>(channel: &mut Inner, request: Request<Body>) -> Reply
where
    Inner: Service<Request<Body>, Response = Response<Body>>,
    Inner::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    // A broken connection has an unknown effect. The request id makes it safe to repeat the call.
    let lost = |error: Inner::Error| {
        let error = error.into();
        let problem = describe(error.as_ref());
        let status = Status::from_error(error);
        let is_answer = !matches!(status.code(), Code::Unknown | Code::Unavailable);
        if is_answer { status } else { Status::unavailable(problem) }
    };
    std::future::poll_fn(|context| channel.poll_ready(context)).await.map_err(lost)?;
    channel.call(request).await.map_err(lost)
}

/// Returns an error and its causes as one line.
fn describe(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

fn too_late() -> Status {
    Status::deadline_exceeded("the deadline of the call passed")
}

/// Returns the time to wait before the next attempt; None for an answer that another attempt does not change.
fn pause_after(reply: &Reply, attempts: u32) -> Option<Duration> {
    let (is_unavailable, hint) = match reply {
        Err(status) => (status.code() == Code::Unavailable, None),
        // An answer of headers alone: the call failed before its response began.
        Ok(response) => {
            let text =
                |name| response.headers().get(name).and_then(|value: &HeaderValue| value.to_str().ok());
            (text("grpc-status") == Some("14"), text("grpc-retry-pushback-ms"))
        }
    };
    if !is_unavailable || attempts >= ATTEMPTS {
        return None;
    }
    match hint {
        Some(hint) => hint.parse().ok().map(Duration::from_millis), // a hint that is no number forbids a retry
        None => Some(
            LONGEST_PAUSE.min(FIRST_PAUSE * 2_u32.pow(attempts - 1)).mul_f64(0.5 + fastrand::f64() / 2.0),
        ),
    }
}

/// Returns the deadline that the caller has set, as time from now.
fn timeout_of(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get("grpc-timeout")?.to_str().ok()?;
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let number: u64 = number.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(number * 3600),
        "M" => Duration::from_secs(number * 60),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        _ => Duration::from_nanos(number),
    })
}

const PREFIX: usize = 5; // flag of compression, and the length of the message

/// Returns an encoded request with a new `request_id`, if it has that field and it is empty.
fn with_request_id(sent: Bytes, field: Option<u32>) -> Bytes {
    let Some(field) = field else { return sent };
    if sent.len() < PREFIX || sent[0] != 0 || has_text(&sent[PREFIX..], field) {
        return sent;
    }
    let id = uuid::Uuid::new_v4().to_string();
    let mut message = BytesMut::from(&sent[PREFIX..]);
    prost::encoding::string::encode(field, &id, &mut message); // the last value of a field counts
    let mut framed = BytesMut::with_capacity(PREFIX + message.len());
    framed.put_u8(0);
    framed.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
    framed.extend_from_slice(&message);
    framed.freeze()
}

/// Returns true if a text field of a message is not empty.
fn has_text(mut message: &[u8], field: u32) -> bool {
    use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};
    while !message.is_empty() {
        let Ok((found, kind)) = decode_key(&mut message) else { return true };
        if found == field && kind == WireType::LengthDelimited {
            return decode_varint(&mut message).is_ok_and(|length| length > 0);
        }
        if skip_field(kind, found, &mut message, DecodeContext::default()).is_err() {
            return true;
        }
    }
    false
}

/// Body of a response that ends with the deadline of the call.
struct Timed {
    body: Body,
    end: Pin<Box<Sleep>>,
}

impl http_body::Body for Timed {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            return Poll::Ready(frame);
        }
        ready!(self.end.as_mut().poll(context));
        Poll::Ready(Some(Err(too_late())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use prost::Message;

    use super::*;
    use crate::api::session::v1::session_service_client::SessionServiceClient;
    use crate::api::session::v1::{DeleteSessionRequest, GetSessionRequest, GetSessionResponse};

    /// Status code, and the hint when to retry.
    type Answer = (u32, Option<&'static str>);

    /// Channel that answers with the given statuses in turn, and records what it was sent.
    #[derive(Clone, Default)]
    struct Fake {
        statuses: Arc<Mutex<Vec<Answer>>>,
        sent: Arc<Mutex<Vec<(HeaderMap, Bytes)>>>,
    }

    impl Service<Request<Body>> for Fake {
        type Response = Response<Body>;
        type Error = Status;
        type Future = Pin<Box<dyn Future<Output = Reply> + Send>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, request: Request<Body>) -> Self::Future {
            let fake = self.clone();
            Box::pin(async move {
                let (head, body) = request.into_parts();
                let body = body.collect().await?.to_bytes();
                fake.sent.lock().unwrap().push((head.headers, body));
                let mut statuses = fake.statuses.lock().unwrap();
                let (code, hint) = if statuses.is_empty() { (0, None) } else { statuses.remove(0) };
                let mut response = Response::builder().header("content-type", "application/grpc");
                if let Some(hint) = hint {
                    response = response.header("grpc-retry-pushback-ms", hint);
                }
                if code != 0 {
                    return Ok(response.header("grpc-status", code).body(Body::empty()).unwrap());
                }
                let mut message = BytesMut::new();
                message.put_u8(0);
                message.put_u32(u32::try_from(GetSessionResponse::default().encoded_len()).unwrap());
                let mut trailers = HeaderMap::new();
                trailers.insert("grpc-status", HeaderValue::from_static("0"));
                let frames = [Frame::data(message.freeze()), Frame::trailers(trailers)].map(Ok::<_, Status>);
                Ok(response
                    .body(Body::new(http_body_util::StreamBody::new(tokio_stream::iter(frames))))
                    .unwrap())
            })
        }
    }

    fn stub(statuses: &[Answer]) -> (Fake, SessionServiceClient<Calls<Fake>>) {
        let fake = Fake { statuses: Arc::new(Mutex::new(statuses.to_vec())), ..Default::default() };
        let token: TokenSource = Arc::new(|| "secret".into());
        (fake.clone(), SessionServiceClient::new(Calls::new(fake, Some(token))))
    }

    fn id_of(sent: &Bytes) -> String {
        DeleteSessionRequest::decode(&sent[PREFIX..]).unwrap().request_id
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_is_repeated_three_times_with_the_same_id_token_and_deadline() {
        let (fake, mut sessions) = stub(&[(14, None), (14, Some("1")), (14, None)]);
        sessions
            .delete_session(DeleteSessionRequest { session_id: "s".into(), ..Default::default() })
            .await
            .unwrap();
        let sent = fake.sent.lock().unwrap();
        assert_eq!(sent.len(), 4);
        assert_eq!(id_of(&sent[0].1).len(), 36);
        for (headers, body) in sent.iter() {
            assert_eq!(headers["authorization"], "Bearer secret");
            assert!(timeout_of(headers).unwrap() <= Duration::from_secs(60));
            assert_eq!(id_of(body), id_of(&sent[0].1));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_fourth_failure_is_the_answer() {
        let (fake, mut sessions) = stub(&[(14, None); 9]);
        let failed = sessions.get_session(GetSessionRequest::default()).await.unwrap_err();
        assert_eq!((failed.code(), fake.sent.lock().unwrap().len()), (Code::Unavailable, 4));
    }

    #[tokio::test(start_paused = true)]
    async fn other_failures_and_a_refused_retry_are_the_answer() {
        for statuses in [[(13, None)], [(3, None)], [(14, Some("-1"))]] {
            let (fake, mut sessions) = stub(&statuses);
            sessions.get_session(GetSessionRequest::default()).await.unwrap_err();
            assert_eq!(fake.sent.lock().unwrap().len(), 1);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_keeps_its_own_id_and_its_nearer_deadline() {
        let (fake, mut sessions) = stub(&[]);
        let mut request =
            tonic::Request::new(DeleteSessionRequest { request_id: "mine".into(), ..Default::default() });
        request.set_timeout(Duration::from_secs(5));
        sessions.delete_session(request).await.unwrap();
        let sent = fake.sent.lock().unwrap();
        assert_eq!(id_of(&sent[0].1), "mine");
        assert!(timeout_of(&sent[0].0).unwrap() <= Duration::from_secs(5));
    }
}
