//! Reads partition 0 of a topic with rskafka: CLIENT BROKER TOPIC ISOLATION. It prints the client's
//! version and then each value, up to END. rskafka has no isolation level.
use std::time::Duration;

use rskafka::client::{partition::UnknownTopicHandling, ClientBuilder};

fn version() -> &'static str {
    let lock = include_str!("../Cargo.lock");
    let rest = lock.split("name = \"rskafka\"\nversion = \"").nth(1).unwrap_or("?\"");
    rest.split('"').next().unwrap_or("?")
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    println!("{}", version());
    let client = ClientBuilder::new(vec![args[2].clone()]).build().await?;
    let partition = client
        .partition_client(args[3].clone(), 0, UnknownTopicHandling::Error)
        .await?;
    let mut next = 0;
    loop {
        let read = partition.fetch_records(next, 1..1_000_000, 1_000);
        let (records, _) = tokio::time::timeout(Duration::from_secs(10), read).await??;
        if records.is_empty() {
            return Err("nothing came for a while".into());
        }
        for found in records {
            next = found.offset + 1;
            let value = found.record.value.unwrap_or_default();
            println!("{:?}", String::from_utf8_lossy(&value));
            if value == b"END" {
                return Ok(());
            }
        }
    }
}
