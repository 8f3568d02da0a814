//! Rust side of `make bench-clients`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use peripety::api::scenario::v1::SpecItem;
use peripety::api::session::v1::{
    CreateSessionRequest, Session, TakeTurnRequest, WatchSessionRequest, turn_event::Event, watch_session_response,
};
use peripety::{Client, StreamExt, action};
use tokio::task::JoinSet;

type Done<Value> = Result<Value, Box<dyn std::error::Error + Send + Sync>>;

async fn open_quietly(client: &Client, sessions: &[Session]) -> Done<u64> {
    for session in sessions {
        let request = WatchSessionRequest { session_id: session.session_id.clone(), ..Default::default() };
        client.sessions().watch_session(request).await?;
    }
    Ok(sessions.len() as u64)
}

async fn play(client: Arc<Client>, mut session: Session, turns: u64) -> Done<(Session, u64)> {
    for _ in 0..turns {
        let turn = TakeTurnRequest { actions: vec![action("hold", [])], ..Default::default() };
        let mut events = client.play(&mut session, turn);
        while let Some(event) = events.next().await {
            event?;
        }
    }
    Ok((session, turns))
}

async fn watch(client: Arc<Client>, session: Session) -> Done<(Session, u64)> {
    let request = WatchSessionRequest { session_id: session.session_id.clone(), ..Default::default() };
    let mut responses = client.watch(request);
    let mut events = 0;
    while let Some(response) = responses.next().await {
        events += 1;
        let Some(watch_session_response::Event::TurnEvent(event)) = response?.event else { continue };
        if matches!(event.event, Some(Event::Committed(_))) && event.turn == session.turn {
            break;
        }
    }
    drop(responses);
    Ok((session, events))
}

async fn joined(mut tasks: JoinSet<Done<(Session, u64)>>) -> Done<(Vec<Session>, u64)> {
    let (mut sessions, mut done) = (Vec::new(), 0);
    while let Some(ended) = tasks.join_next().await {
        let (session, part) = ended??;
        sessions.push(session);
        done += part;
    }
    Ok((sessions, done))
}

async fn validate(client: &Client, lines: &[Vec<u8>]) -> Done<u64> {
    let documents: Vec<_> = lines.iter().enumerate()
        .map(|(number, line)| SpecItem { item_id: number.to_string(), spec: line.clone() })
        .collect();
    let mut verdicts = client.validate(tokio_stream::iter(documents), None);
    let mut accepted = 0;
    while let Some(verdict) = verdicts.next().await {
        accepted += u64::from(verdict?.accepted);
    }
    Ok(accepted)
}

#[tokio::main]
async fn main() -> Done<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let client = Arc::new(Client::connect(&arguments[1])?);
    let text = std::fs::read(&arguments[3])?;
    let lines: Vec<Vec<u8>> =
        text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect();
    let (sessions, turns, rounds): (u64, u64, u64) =
        (arguments[4].parse()?, arguments[5].parse()?, arguments[6].parse()?);
    let mut best: BTreeMap<&str, f64> = BTreeMap::new();
    for _ in 0..rounds {
        let mut opened = Vec::new();
        for _ in 0..sessions {
            let create = CreateSessionRequest { scenario_id: arguments[2].clone(), ..Default::default() };
            opened.push(client.sessions().create_session(create).await?.into_inner().session.unwrap_or_default());
        }
        let mut measure = |name, done: u64, started: Instant| {
            let figure = best.entry(name).or_default();
            *figure = figure.max(done as f64 / started.elapsed().as_secs_f64());
        };
        let started = Instant::now();
        let done = open_quietly(&client, &opened).await?;
        measure("openings", done, started);
        let started = Instant::now();
        let (played, done) =
            joined(opened.into_iter().map(|session| play(client.clone(), session, turns)).collect()).await?;
        measure("turns", done, started);
        let started = Instant::now();
        let (_, done) = joined(played.into_iter().map(|session| watch(client.clone(), session)).collect()).await?;
        measure("events", done, started);
        let started = Instant::now();
        let done = validate(&client, &lines).await?;
        measure("specifications", done, started);
    }
    println!("{}", serde_json::to_string(&best)?);
    Ok(())
}
