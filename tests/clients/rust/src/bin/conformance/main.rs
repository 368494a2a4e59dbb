//! Runs the scenario: conformance SCENARIO ADDRESS.

mod checks;

use std::{env, fs, io, process, time::Duration};

use agent::v1::admin_service_client::AdminServiceClient;
use agent::v1::memory_service_client::MemoryServiceClient;
use agent::v1::ranker_service_client::RankerServiceClient;
use agent::{Patience, Refusal, call, code_name, connect, ingest};
use checks::{at, filled, holds};
use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage};
use serde_json::{Value, json};
use tonic::transport::Channel;

/// The clients, and what their messages look like as JSON.
struct Clients {
    memory: MemoryServiceClient<Channel>,
    ranker: RankerServiceClient<Channel>,
    admin: AdminServiceClient<Channel>,
    pool: DescriptorPool,
}

impl Clients {
    fn new(address: &str) -> Self {
        let channel = connect(address).expect("an address");
        let api: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/api.binpb"));
        Clients {
            memory: MemoryServiceClient::new(channel.clone()),
            ranker: RankerServiceClient::new(channel.clone()),
            admin: AdminServiceClient::new(channel),
            pool: DescriptorPool::decode(api).expect("descriptors"),
        }
    }

    fn parsed<M: Message + Default>(&self, name: &str, value: &Value) -> M {
        let descriptor = self.pool.get_message_by_name(&format!("memoryranker.v1.{name}")).expect(name);
        DynamicMessage::deserialize(descriptor, value).expect("a message").transcode_to().expect("the same message")
    }

    fn shown(&self, name: &str, message: &impl Message) -> Value {
        let descriptor = self.pool.get_message_by_name(&format!("memoryranker.v1.{name}")).expect(name);
        let dynamic = DynamicMessage::decode(descriptor, message.encode_to_vec().as_slice()).expect("the same message");
        serde_json::to_value(dynamic).expect("JSON")
    }

    async fn call(&mut self, name: &str, asked: &Value, patience: Patience) -> Result<Value, Refusal> {
        macro_rules! unary {
            ($client:ident, $method:ident) => {{
                let request = self.parsed(&format!("{name}Request"), asked);
                let answer = call(patience, request, async |request| self.$client.$method(request).await).await?;
                Ok(self.shown(&format!("{name}Response"), &answer))
            }};
        }
        match name {
            "UpsertMemories" => unary!(memory, upsert_memories),
            "GetMemory" => unary!(memory, get_memory),
            "Rank" => unary!(ranker, rank),
            "ReportUse" => unary!(ranker, report_use),
            "GetPacket" => unary!(ranker, get_packet),
            "GetStatus" => unary!(admin, get_status),
            "ListMemories" => self.list(asked, patience).await,
            "Ingest" => self.ingest(asked, patience).await,
            _ => panic!("unknown call {name}"),
        }
    }

    async fn list(&mut self, asked: &Value, patience: Patience) -> Result<Value, Refusal> {
        let mut request: agent::v1::ListMemoriesRequest = self.parsed("ListMemoriesRequest", asked);
        let mut memories = Vec::new();
        loop {
            let page =
                call(patience, request.clone(), async |request| self.memory.list_memories(request).await).await?;
            memories.extend(page.memories.iter().map(|each| self.shown("Memory", each)));
            if page.next_page_token.is_empty() {
                return Ok(json!({ "memories": memories }));
            }
            request.page_token = page.next_page_token;
        }
    }

    async fn ingest(&mut self, asked: &Value, patience: Patience) -> Result<Value, Refusal> {
        let text = |name: &str| asked[name].as_str().expect("a text").to_string();
        let lists = |value: &Value| value.as_array().expect("a list").clone();
        let parse = |chunk: &Value| lists(chunk).iter().map(|each| self.parsed("Memory", each)).collect();
        let chunks = lists(&asked["chunks"]).iter().map(parse).collect();
        let (namespace, stream) = (text("namespace"), text("streamId"));
        let answers = ingest(&mut self.memory, &namespace, &stream, chunks, patience.deadline).await?;
        let rejected = answers.iter().flat_map(|each| &each.rejections).filter_map(|each| each.result.as_ref());
        Ok(json!({
            "acknowledgedSequence": answers.iter().map(|each| each.acknowledged_sequence).max(),
            "createdCount": answers.iter().map(|each| each.created_count).sum::<i32>(),
            "rejections": rejected
                .map(|each| json!({
                    "memoryId": each.memory_id,
                    "message": each.status.as_ref().map(|status| &status.message),
                }))
                .collect::<Vec<_>>(),
        }))
    }
}

fn refused(refusal: &Refusal) -> Value {
    let violations = refusal.violations.iter();
    json!({
        "code": code_name(refusal.code),
        "reason": refusal.reason,
        "message": refusal.message,
        "metadata": refusal.metadata,
        "violations": violations.map(|(field, words)| json!({"field": field, "description": words})).collect::<Vec<_>>(),
        "text": refusal.to_string(),
    })
}

/// What is wrong with a step; nothing, if all is as expected.
async fn run(step: &Value, clients: &mut Clients, known: &mut Value) -> Vec<String> {
    if let Some(word) = step["control"].as_str() {
        println!("control {word}");
        let mut answer = String::new();
        let _ = io::stdin().read_line(&mut answer);
        return if answer == "done\n" { vec![] } else { vec![format!("nobody did {word}")] };
    }
    let patience = Patience {
        deadline: Duration::from_millis(step["deadline_ms"].as_u64().unwrap_or(10_000)),
        wait_for_ready: step["wait_for_ready"].as_bool().unwrap_or(true),
    };
    let name = step["call"].as_str().expect("a call");
    let (found, checks) = match clients.call(name, &filled(&step["request"], known), patience).await {
        Ok(answer) => (answer, &step["expect"]),
        Err(refusal) => (refused(&refusal), &step["refused"]),
    };
    let Some(checks) = checks.as_array() else {
        return vec![format!("was not to end with {found}")];
    };
    for (name, path) in step["save"].as_object().into_iter().flatten() {
        known[name] = at(&found, path.as_str().expect("a path"));
    }
    let failed = checks.iter().filter(|check| !holds(check, &found, known));
    failed.map(|check| format!("{check} found {}", at(&found, check["path"].as_str().unwrap_or_default()))).collect()
}

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = env::args().collect();
    let text = fs::read_to_string(&arguments[1]).expect("the scenario");
    let scenario: Value = serde_json::from_str(&text).expect("JSON");
    let mut clients = Clients::new(&arguments[2]);
    let mut known = json!({"namespace": "conformance"});
    let mut exit = 0;
    for step in scenario["steps"].as_array().expect("steps") {
        let problems = run(step, &mut clients, &mut known).await;
        let name = step["name"].as_str().unwrap_or_default();
        if problems.is_empty() {
            println!("ok {name}");
        } else {
            println!("FAILED {name}: {}", problems.join("; "));
            exit = 1;
        }
    }
    process::exit(exit);
}
