//! Loses the connection within a turn, and continues behind the last event.

use peripety::api::scenario::v1::CompileScenarioRequest;
use peripety::api::scenario::v1::compile_scenario_request::Source;
use peripety::api::scenario::v1::compile_scenario_response::Event as Compiling;
use peripety::api::session::v1::{CreateSessionRequest, TakeTurnRequest, turn_event::Event};
use peripety::{Client, StreamExt, last};
use tokio::net::{TcpListener, TcpStream};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = std::env::var("PERIPETY_ADDRESS").unwrap_or_else(|_| peripety::DEFAULT_ADDRESS.into());
    let listener = TcpListener::bind("127.0.0.1:0").await?; // in front of the server, to break the connection
    let client = Client::connect(&listener.local_addr()?.to_string())?;
    let (lose, mut lost) = tokio::sync::watch::channel(());
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            let Ok(mut far) = TcpStream::connect(&server).await else { return };
            tokio::select! { _ = lost.changed() => {}, _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {} }
        }
    });
    let source = Some(Source::Spec(std::fs::read("scenario.json")?));
    let compiled = last(client.follow(CompileScenarioRequest { source, ..Default::default() })).await?;
    let Some(Compiling::Compiled(compiled)) = compiled.event else { return Err("not compiled".into()) };
    let create = CreateSessionRequest { scenario_id: compiled.scenario_id, ..Default::default() };
    let mut session =
        client.sessions().create_session(create).await?.into_inner().session.unwrap_or_default();
    let mut events = client.play(&mut session, TakeTurnRequest::default());
    let mut is_lost = false;
    while let Some(event) = events.next().await.transpose()? {
        let kind = if matches!(event.event, Some(Event::Accepted(_))) { "accepted" } else { "event" };
        println!("{} {kind}", event.sequence);
        if !std::mem::replace(&mut is_lost, true) {
            lose.send(())?;
        }
    }
    Ok(())
}
