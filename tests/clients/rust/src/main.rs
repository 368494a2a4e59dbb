//! An agent: it remembers, ranks, uses, and says what it used.

use std::{env, process, time::Duration};

use agent::v1::{memory_service_client::MemoryServiceClient, ranker_service_client::RankerServiceClient};
use agent::v1::{Memory, RankRequest, ReportUseRequest, UpsertMemoriesRequest};
use agent::{Patience, call, connect, ingest};
use uuid::Uuid;

fn memory(id: &str, content: &str) -> Memory {
    Memory { id: id.into(), content: content.into(), ..Default::default() }
}

async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let address = env::var("MEMORY_RANKER_LISTEN").unwrap_or_default();
    if address.is_empty() {
        return Err("set MEMORY_RANKER_LISTEN to unix:PATH or HOST:PORT, where `memory-ranker serve` listens".into());
    }
    let channel = connect(&address)?; // one for the whole agent
    let mut memories = MemoryServiceClient::new(channel.clone());
    let mut ranker = RankerServiceClient::new(channel);
    let (namespace, patience) = ("agent-7".to_string(), Patience::default());

    // Remember: one batch, and a stream for anything longer; its id resumes it, should it break.
    let batch = UpsertMemoriesRequest {
        namespace: namespace.clone(),
        memories: vec![memory("canary", "Deploys need a green canary for 30 minutes")],
        request_id: Uuid::new_v4().to_string(),
    };
    call(patience, batch, async |request| memories.upsert_memories(request).await).await?;
    let chunks = vec![vec![memory("note-1", "First note")], vec![memory("note-2", "Second note")]];
    let stream = Uuid::new_v4().to_string();
    ingest(&mut memories, &namespace, &stream, chunks, Duration::from_secs(30)).await?;

    // Rank, use, report.
    let task = RankRequest {
        namespace,
        task: "deploy the payment service".into(),
        request_id: Uuid::new_v4().to_string(),
        ..Default::default()
    };
    let packet = call(patience, task, async |request| ranker.rank(request).await).await?;
    let mut used_memory_ids = Vec::new();
    for item in packet.items {
        let memory = item.memory.unwrap_or_default();
        println!("{:.3}  {}", item.score, memory.content);
        if memory.content.contains("canary") {
            used_memory_ids.push(memory.id);
        }
    }
    let report = ReportUseRequest { packet_id: packet.packet_id, used_memory_ids, ..Default::default() };
    call(patience, report, async |request| ranker.report_use(request).await).await?;
    Ok(())
}

#[tokio::main]
async fn main() {
    if let Err(error) = run().await {
        eprintln!("{error}");
        process::exit(1);
    }
}
