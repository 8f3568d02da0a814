//! Plays until the run ends, and prints each event as it arrives.

use peripety::api::scenario::v1::CompileScenarioRequest;
use peripety::api::scenario::v1::compile_scenario_request::Source;
use peripety::api::scenario::v1::compile_scenario_response::Event as Compiling;
use peripety::api::session::v1::{CreateSessionRequest, TakeTurnRequest, turn_event::Event};
use peripety::{Client, StreamExt, action};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::connect(&std::env::var("PERIPETY_ADDRESS").unwrap_or_default())?;
    let source = Some(Source::Spec(std::fs::read("scenario.json")?));
    let mut create = CreateSessionRequest::default();
    let mut work = client.follow(CompileScenarioRequest { source, ..Default::default() });
    while let Some(response) = work.next().await {
        match response?.event {
            Some(Compiling::Progress(done)) => println!("{:.0} % {}", 100.0 * done.fraction, done.message),
            Some(Compiling::Compiled(compiled)) => create.scenario_id = compiled.scenario_id,
            _ => {}
        }
    }
    let mut session =
        client.sessions().create_session(create).await?.into_inner().session.unwrap_or_default();
    while let Some(legal) = session.legal_actions.first() {
        let turn = TakeTurnRequest { actions: vec![action(&legal.action_id, [])], ..Default::default() };
        let mut events = client.play(&mut session, turn);
        while let Some(event) = events.next().await.transpose()? {
            match event.event {
                Some(Event::Accepted(_)) => println!("{} accepted", event.sequence), // discard earlier events
                Some(Event::NarrativeChunk(chunk)) => println!("{} {}", event.sequence, chunk.text),
                Some(Event::Committed(_)) => println!("{} committed", event.sequence),
                _ => println!("{}", event.sequence),
            }
        }
    }
    println!("{} {:?}", session.turn, session.status.unwrap_or_default().kind());
    Ok(())
}
