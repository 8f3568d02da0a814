//! Compiles a scenario, starts a session and plays one turn.

use peripety::api::scenario::v1::CompileScenarioRequest;
use peripety::api::scenario::v1::compile_scenario_request::Source;
use peripety::api::scenario::v1::compile_scenario_response::Event as Compiling;
use peripety::api::session::v1::{CreateSessionRequest, TakeTurnRequest, turn_event::Event};
use peripety::{Client, StreamExt, action, last};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::connect(&std::env::var("PERIPETY_ADDRESS").unwrap_or_default())?;
    let source = Some(Source::Spec(std::fs::read("scenario.json")?));
    let compiled = last(client.follow(CompileScenarioRequest { source, ..Default::default() })).await?;
    let Some(Compiling::Compiled(compiled)) = compiled.event else { return Err("not compiled".into()) };

    let create = CreateSessionRequest { scenario_id: compiled.scenario_id, ..Default::default() };
    let created = client.sessions().create_session(create).await?.into_inner();
    let mut session = created.session.unwrap_or_default();
    let turn = TakeTurnRequest { actions: vec![action("tend", [])], ..Default::default() };
    let mut events = client.play(&mut session, turn);
    while let Some(event) = events.next().await {
        if let Some(Event::NarrativeChunk(chunk)) = event?.event {
            print!("{}", chunk.text);
        }
    }
    drop(events);
    println!("\nturn {} is stored, chain hash {}", session.turn, session.chain_hash);
    Ok(())
}
