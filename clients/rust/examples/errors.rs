//! Receives an unknown id, a stale turn and an invalid field, and decides by the reason.

use peripety::api::common::v1::ErrorReason;
use peripety::api::scenario::v1::CompileScenarioRequest;
use peripety::api::scenario::v1::compile_scenario_request::Source;
use peripety::api::scenario::v1::compile_scenario_response::Event as Compiling;
use peripety::api::session::v1::{
    CreateSessionRequest, GetSessionRequest, ListSessionsRequest, TakeTurnRequest,
};
use peripety::{Client, Error, last};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::connect(&std::env::var("PERIPETY_ADDRESS").unwrap_or_default())?;
    let source = Some(Source::Spec(std::fs::read("scenario.json")?));
    let compiled = last(client.follow(CompileScenarioRequest { source, ..Default::default() })).await?;
    let Some(Compiling::Compiled(compiled)) = compiled.event else { return Err("not compiled".into()) };
    let create = CreateSessionRequest { scenario_id: compiled.scenario_id, ..Default::default() };
    let mut old = client.sessions().create_session(create).await?.into_inner().session.unwrap_or_default();
    old.turn = 8; // as if another client had rewound the session

    let get = GetSessionRequest { session_id: "unknown".into(), ..Default::default() };
    let list = ListSessionsRequest { page_size: -1, ..Default::default() };
    let unknown = client.sessions().get_session(get).await.map(drop).map_err(Error::from);
    let stale = last(client.play(&mut old, TakeTurnRequest::default())).await.map(drop);
    let invalid = client.sessions().list_sessions(list).await.map(drop).map_err(Error::from);
    for failed in [unknown, stale, invalid].into_iter().filter_map(Result::err) {
        match (failed.reason, failed.violations.first()) {
            (ErrorReason::UnknownSession, _) => println!("gone, start a new game: {}", failed.message),
            (ErrorReason::StaleTurn, _) => println!("read the session again: {}", failed.message),
            (_, Some(violation)) => println!("correct {}: {}", violation.field, failed.message),
            _ => return Err(failed.into()),
        }
    }
    Ok(())
}
