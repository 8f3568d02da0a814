//! Validates one document per line over one stream.

use std::fs::File;
use std::io::{BufRead, BufReader};

use peripety::api::scenario::v1::SpecItem;
use peripety::{Client, Error, StreamExt};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::connect(&std::env::var("PERIPETY_ADDRESS").unwrap_or_default())?;
    let lines = BufReader::new(File::open("batch.jsonl")?).lines().map_while(Result::ok).enumerate();
    let documents = lines
        .map(|(index, line)| SpecItem { item_id: format!("line {}", index + 1), spec: line.into_bytes() });
    let mut verdicts = client.validate(tokio_stream::iter(documents), None); // reads as fast as the server validates
    while let Some(verdict) = verdicts.next().await.transpose()? {
        let (id, findings) = (verdict.item_id, verdict.findings.unwrap_or_default().findings);
        match (verdict.error, findings.first()) {
            (Some(error), _) => println!("{id} not validated: {}", Error::from(error)),
            (None, Some(first)) if !verdict.accepted => {
                println!("{id} rejected: {} {} {}", first.code, first.path, first.message);
            }
            _ => println!("{id} accepted"),
        }
    }
    Ok(())
}
