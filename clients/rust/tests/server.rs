//! The client against a real server, over good and bad connections. `make test-clients` starts the server.

use std::process::Stdio;
use std::time::Duration;

use peripety::api::common::v1::ErrorReason;
use peripety::api::scenario::v1::compile_scenario_request::Source;
use peripety::api::scenario::v1::compile_scenario_response::Event as Compiling;
use peripety::api::scenario::v1::{CompileScenarioRequest, GenerateScenarioRequest, SpecItem};
use peripety::api::session::v1::{
    CreateSessionRequest, GetSessionRequest, Session, TakeTurnRequest, TurnEvent, WatchSessionRequest,
    turn_event, watch_session_response,
};
use peripety::{Client, Error, Settings, Stream, StreamExt, action, last, verify_transcript};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tonic::Code;

const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../samples");
const DEFAULT_CUTS: u64 = 16;

fn address() -> String {
    std::env::var("PERIPETY_ADDRESS").expect("set PERIPETY_ADDRESS")
}

fn server() -> Client {
    Client::connect(&address()).unwrap()
}

fn scenario() -> CompileScenarioRequest {
    let source = Some(Source::Spec(std::fs::read(format!("{SAMPLES}/scenario.json")).unwrap()));
    CompileScenarioRequest { source, ..Default::default() }
}

async fn new_session(client: &Client) -> Session {
    let Some(Compiling::Compiled(compiled)) = last(client.follow(scenario())).await.unwrap().event else {
        panic!("not compiled")
    };
    let create =
        CreateSessionRequest { scenario_id: compiled.scenario_id, seed: Some(7), ..Default::default() };
    client.sessions().create_session(create).await.unwrap().into_inner().session.unwrap()
}

fn tend() -> TakeTurnRequest {
    TakeTurnRequest { actions: vec![action("tend", [])], input: "I listen.".into(), ..Default::default() }
}

/// Returns the events of the attempt that counts, without what differs from session to session.
async fn told(mut events: Stream<'_, TurnEvent>) -> Result<Vec<TurnEvent>, Error> {
    let mut found = Vec::new();
    while let Some(event) = events.next().await {
        let mut event = event?;
        event.session_id.clear();
        match &mut event.event {
            Some(turn_event::Event::Accepted(accepted)) => {
                found.clear();
                *accepted = turn_event::Accepted::default();
            }
            Some(turn_event::Event::Committed(committed)) => {
                committed.commit_time = None;
                committed.usage = None; // the prompt of a later session is cached
            }
            _ => {}
        }
        found.push(event);
    }
    Ok(found)
}

/// A proxy that breaks connections on command.
struct Proxy {
    _process: Child,
    commands: ChildStdin,
    replies: Lines<BufReader<ChildStdout>>,
    address: String,
}

impl Proxy {
    async fn start() -> Self {
        let python = std::env::var("PERIPETY_PYTHON").expect("set PERIPETY_PYTHON");
        let mut process = Command::new(python)
            .args(["-m", "support.servers.misbehaving_proxy", &address()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let commands = process.stdin.take().unwrap();
        let mut replies = BufReader::new(process.stdout.take().unwrap()).lines();
        let listening = replies.next_line().await.unwrap().unwrap();
        let address = listening.rsplit(' ').next().unwrap().to_owned();
        Self { _process: process, commands, replies, address }
    }

    /// Sends a command, and returns the reply.
    async fn send(&mut self, command: &str) -> String {
        self.commands.write_all(format!("{command}\n").as_bytes()).await.unwrap();
        self.replies.next_line().await.unwrap().unwrap()
    }

    fn client(&self) -> Client {
        Client::connect(&self.address).unwrap()
    }
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_turn_is_streamed_and_the_session_is_at_the_next_one() {
    let client = server();
    let mut session = new_session(&client).await;
    let events = told(client.play(&mut session, tend())).await.unwrap();
    assert!(matches!(events[0].event, Some(turn_event::Event::Accepted(_))));
    assert!(matches!(events.last().unwrap().event, Some(turn_event::Event::Committed(_))));
    let request = GetSessionRequest { session_id: session.session_id.clone(), ..Default::default() };
    let mut stored = client.sessions().get_session(request).await.unwrap().into_inner().session.unwrap();
    (stored.state, stored.usage, session.usage) = (Vec::new(), None, None);
    assert_eq!(session, stored);
}

#[tokio::test]
#[ignore = "needs a server"]
async fn an_exported_session_has_the_chain_hash_of_the_server() {
    let client = server();
    let mut session = new_session(&client).await;
    for _ in 0..3 {
        told(client.play(&mut session, tend())).await.unwrap();
    }
    let bundle = client.export(session.session_id.clone()).await.unwrap();
    let verified = verify_transcript(bundle.as_slice()).unwrap();
    assert_eq!((verified.chain_hash, verified.turns), (session.chain_hash, 3));
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_large_batch_has_a_verdict_on_each_document() {
    let spec = std::fs::read(format!("{SAMPLES}/scenario.json")).unwrap();
    let documents = (0..1000).map(move |index| SpecItem {
        item_id: index.to_string(),
        spec: if index % 10 == 0 { b"{".to_vec() } else { spec.clone() },
    });
    let client = server();
    let mut verdicts = client.validate(tokio_stream::iter(documents), None);
    let (mut accepted, mut rejected) = (0, 0);
    while let Some(verdict) = verdicts.next().await {
        if verdict.unwrap().accepted { accepted += 1 } else { rejected += 1 }
    }
    assert_eq!((accepted, rejected), (900, 100));
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_turn_that_is_cut_at_any_byte_is_played_once() {
    let (direct, mut proxy) = (server(), Proxy::start().await);
    let expected = told(direct.play(&mut new_session(&direct).await, tend())).await.unwrap();
    let cuts = std::env::var("PERIPETY_CUTS").ok().and_then(|cuts| cuts.parse().ok()).unwrap_or(DEFAULT_CUTS);
    let (mut random, mut broken) = (fastrand::Rng::with_seed(7), 0);
    for cut in 0..cuts {
        let fault = if cut % 4 == 3 {
            format!("cut_request {}", random.u32(..400))
        } else {
            format!("cut {}", random.u32(..1500))
        };
        let (mut session, client) = (new_session(&direct).await, proxy.client());
        proxy.send(&fault).await;
        assert_eq!(told(client.play(&mut session, tend())).await.unwrap(), expected, "{fault}");
        assert_eq!(session.turn, 1, "{fault}");
        broken += u64::from(proxy.send("state").await == "triggered");
        proxy.send("clear").await;
    }
    println!("{cuts} turns, {broken} of them over a connection that broke");
    assert!(broken >= cuts / 2, "only {broken} of {cuts} connections broke");
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_turn_survives_what_proxies_do() {
    let (direct, mut proxy) = (server(), Proxy::start().await);
    let expected = told(direct.play(&mut new_session(&direct).await, tend())).await.unwrap();
    let client = proxy.client();
    for fault in ["goaway 3", "goaway 6", "refuse 0", "refuse 3", "duplicate", "delay 0.01", "trickle"] {
        for _ in 0..2 {
            // The second turn uses what the first has left of the connection.
            let mut session = new_session(&direct).await;
            proxy.send(fault).await;
            assert_eq!(told(client.play(&mut session, tend())).await.unwrap(), expected, "{fault}");
            proxy.send("clear").await;
        }
    }
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_frozen_connection_is_noticed_by_pings() {
    let (direct, mut proxy) = (server(), Proxy::start().await);
    let expected = told(direct.play(&mut new_session(&direct).await, tend())).await.unwrap();
    let mut session = new_session(&direct).await;
    let settings = Settings::default().keepalive(Duration::from_secs(20));
    let client = Client::connect_with(&proxy.address, settings).unwrap();
    proxy.send("freeze 300").await;
    assert_eq!(told(client.play(&mut session, tend())).await.unwrap(), expected);
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_slow_reader_gets_every_event() {
    let client = server();
    let expected = told(client.play(&mut new_session(&client).await, tend())).await.unwrap();
    let mut session = new_session(&client).await;
    let slowly = client.play(&mut session, tend()).then(|event| async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        event
    });
    assert_eq!(told(Box::pin(slowly)).await.unwrap(), expected);
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_quiet_stream_opens_before_its_first_event() {
    let client = server();
    let session_id = new_session(&client).await.session_id;
    let request = WatchSessionRequest { session_id, ..Default::default() };
    let mut responses = client.sessions().watch_session(request).await.unwrap().into_inner();
    let first = tokio::time::timeout(Duration::from_millis(200), responses.message()).await;
    assert!(first.is_err(), "not quiet: {first:?}");
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_refused_turn_is_the_same_error_on_any_connection() {
    let (direct, mut proxy) = (server(), Proxy::start().await);
    for fault in ["clear", "cut 20", "cut_request 20", "goaway 3", "refuse 3", "trickle"] {
        let mut session = new_session(&direct).await;
        let client = proxy.client();
        proxy.send(fault).await;
        let turn = TakeTurnRequest { actions: vec![action("unknown", [])], ..Default::default() };
        let refused = told(client.play(&mut session, turn)).await.unwrap_err();
        assert_eq!(refused.code, Code::InvalidArgument, "{fault}: {refused}");
        assert_eq!(refused.violations[0].field, "actions[0].action_id", "{fault}");
        proxy.send("clear").await;
    }
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_watch_continues_over_cuts_without_gaps() {
    let (direct, mut proxy) = (server(), Proxy::start().await);
    let mut session = new_session(&direct).await;
    for _ in 0..3 {
        told(direct.play(&mut session, tend())).await.unwrap();
    }
    let client = proxy.client();
    proxy.send("cut 300").await;
    let request = WatchSessionRequest { session_id: session.session_id.clone(), ..Default::default() };
    let (mut responses, mut seen) = (client.watch(request), Vec::new());
    while let Some(response) = responses.next().await {
        if let Some(watch_session_response::Event::TurnEvent(event)) = response.unwrap().event {
            seen.push(event.sequence);
            if seen.len() % 5 == 0 {
                proxy.send("cut 100").await;
            }
            if event.sequence == session.last_sequence {
                break;
            }
        }
    }
    assert_eq!(seen, (1..=session.last_sequence).collect::<Vec<_>>());
}

#[tokio::test]
#[ignore = "needs a server"]
async fn long_work_continues_behind_its_last_event() {
    let mut proxy = Proxy::start().await;
    let client = proxy.client();
    proxy.send("cut 700").await;
    let request =
        GenerateScenarioRequest { description: "Two players share one table.".into(), ..Default::default() };
    let (mut responses, mut next) = (client.follow(request), 1);
    while let Some(response) = responses.next().await {
        assert_eq!(response.unwrap().sequence, next);
        next += 1;
    }
    assert!(next > 2);
}

#[tokio::test]
#[ignore = "needs a server"]
async fn an_unknown_session_is_a_typed_error() {
    let request = GetSessionRequest { session_id: "unknown".into(), ..Default::default() };
    let failed: Error = server().sessions().get_session(request).await.unwrap_err().into();
    assert_eq!((failed.code, failed.reason), (Code::NotFound, ErrorReason::UnknownSession));
    assert!(!failed.message.is_empty() && !failed.is_lost_connection());
}

#[tokio::test]
async fn a_lost_server_is_a_typed_error() {
    let client = Client::connect("127.0.0.1:1").unwrap();
    let failed: Error = client.sessions().get_session(GetSessionRequest::default()).await.unwrap_err().into();
    assert!(failed.is_lost_connection(), "{failed}");
}

#[tokio::test]
async fn a_token_is_never_sent_as_plaintext_to_another_machine() {
    let refused = Client::connect_with("example.org:443", Settings::default().token("secret")).unwrap_err();
    assert!(refused.message.starts_with("token: "), "{refused}");
    assert!(!format!("{:?} {refused}", Settings::default().token("secret")).contains("secret"));
}
