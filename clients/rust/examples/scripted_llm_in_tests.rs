//! Tests a game whose model is scripted: the same words in every run, without a key and without cost. Start the server
//! with `MODEL_PROVIDER=scripted PERIPETY_SCRIPT=clients/samples/script.toml peripety serve`, then run
//! `cargo test --example scripted_llm_in_tests`.

#![cfg_attr(not(test), allow(unused_imports))]

use peripety::api::scenario::v1::CompileScenarioRequest;
use peripety::api::scenario::v1::compile_scenario_request::Source;
use peripety::api::scenario::v1::compile_scenario_response::Event as Compiling;
use peripety::api::session::v1::{CreateSessionRequest, TakeTurnRequest, turn_event::Event};
use peripety::{Client, action, last};

#[tokio::test]
#[ignore = "needs the server above"]
async fn the_narrator_answers_from_the_script() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::connect(&std::env::var("PERIPETY_ADDRESS").unwrap_or_default())?;
    let source = Some(Source::Spec(std::fs::read("../samples/scenario.json")?));
    let compiled = last(client.follow(CompileScenarioRequest { source, ..Default::default() })).await?;
    let Some(Compiling::Compiled(compiled)) = compiled.event else { return Err("not compiled".into()) };
    let create = CreateSessionRequest { scenario_id: compiled.scenario_id, ..Default::default() };
    let mut session =
        client.sessions().create_session(create).await?.into_inner().session.unwrap_or_default();
    for (words, expected) in [("I listen", "There is only the wind."), ("I go on", "The watch goes on.")] {
        let turn =
            TakeTurnRequest { input: words.into(), actions: vec![action("tend", [])], ..Default::default() };
        let Some(Event::Committed(end)) = last(client.play(&mut session, turn)).await?.event else {
            return Err("not committed".into());
        };
        assert!(end.narrative.starts_with(expected), "{words}: {}", end.narrative);
    }
    Ok(())
}

#[cfg(not(test))]
fn main() {}
