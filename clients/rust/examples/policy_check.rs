//! Decides on tool calls, and compares with what is expected.

use peripety::Client;
use peripety::api::policy::v1::{DecideRequest, PolicyRequest, PolicySource, policy_source::Source};
use serde_json::Value;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::connect(&std::env::var("PERIPETY_ADDRESS").unwrap_or_default())?;
    let document = Source::Document(std::fs::read("policy.json")?);
    let policy = PolicySource { source: Some(document), ..Default::default() };
    let calls: Vec<Value> = serde_json::from_slice(&std::fs::read("policy_calls.json")?)?;
    for call in calls {
        let request = PolicyRequest {
            server_name: "files".into(),
            tool_name: call["tool_name"].as_str().unwrap_or_default().into(),
            arguments: call["arguments"].to_string().into_bytes(),
            ..Default::default()
        };
        let question =
            DecideRequest { policy: Some(policy.clone()), request: Some(request), ..Default::default() };
        let decided = client.policies().decide(question).await?.into_inner().result.unwrap_or_default();
        let decision = format!("{:?}", decided.decision()).to_lowercase();
        println!("{decision}: {} {}: {:?}", call["tool_name"], call["arguments"], decided.reasons);
        if call["expected"] != decision {
            return Err(format!("expected {}", call["expected"]).into());
        }
    }
    Ok(())
}
