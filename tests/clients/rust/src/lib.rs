//! What an agent needs around the generated code: one channel, deadlines and retries, refusals that can be read, and
//! streams. Copy it.

use std::{collections::HashMap, fmt, time::Duration};

use tokio::{sync::mpsc, time::Instant};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::transport::{Channel, Endpoint, Error};
use tonic::{Code, Request, Response, Status};
use tonic_types::StatusExt;
use v1::memory_service_client::MemoryServiceClient;
use v1::{IngestMemoriesRequest, IngestMemoriesResponse, Memory};

/// The generated code.
#[allow(clippy::all)]
pub mod v1 {
    tonic::include_proto!("memoryranker.v1");
}

const ATTEMPTS: u32 = 5;
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// A channel to unix:PATH or HOST:PORT. Make one and clone it: clones share the connection, which is made again by
/// itself.
pub fn connect(address: &str) -> Result<Channel, Error> {
    let target = if address.starts_with("unix:") { address.to_string() } else { format!("http://{address}") };
    Ok(Endpoint::from_shared(target)?.connect_timeout(Duration::from_secs(2)).connect_lazy())
}

/// How long a call may take, and whether it waits that long for a server that is not there yet.
#[derive(Clone, Copy)]
pub struct Patience {
    pub deadline: Duration,
    pub wait_for_ready: bool,
}

impl Default for Patience {
    fn default() -> Self {
        Patience { deadline: Duration::from_secs(5), wait_for_ready: false }
    }
}

/// Calls a method, again while the server is unavailable. That is safe, because writes and Rank carry a request_id:
/// what did arrive counts once.
///
/// `call(Patience::default(), request, async |request| client.rank(request).await)`
pub async fn call<Q: Clone, A>(
    patience: Patience,
    message: Q,
    mut method: impl AsyncFnMut(Request<Q>) -> Result<Response<A>, Status>,
) -> Result<A, Refusal> {
    let end = Instant::now() + patience.deadline;
    let mut pause = Duration::from_millis(100);
    for attempt in 1.. {
        let mut request = Request::new(message.clone());
        request.set_timeout(end.saturating_duration_since(Instant::now()));
        let refusal = match method(request).await {
            Ok(answer) => return Ok(answer.into_inner()),
            // The stack's own word for a deadline that passed on this side.
            Err(status) if status.code() == Code::Cancelled && Instant::now() >= end => {
                return Err(Refusal::new(Status::deadline_exceeded("the deadline passed")));
            }
            Err(status) => Refusal::new(status),
        };
        let enough = attempt >= ATTEMPTS && !patience.wait_for_ready;
        if refusal.code != Code::Unavailable || enough || Instant::now() + pause >= end {
            return Err(refusal);
        }
        tokio::time::sleep(pause).await;
        pause = LONGEST_PAUSE.min(2 * pause);
    }
    unreachable!()
}

/// A call that failed, with everything that the server said about it.
#[derive(Debug)]
pub struct Refusal {
    pub code: Code,
    /// The server's stable name for what went wrong; of a failure on the way, the code's name.
    pub reason: String,
    pub message: String,
    pub metadata: HashMap<String, String>,
    /// The bad fields: path and what is wrong.
    pub violations: Vec<(String, String)>,
    pub retry_after: Option<Duration>,
}

impl Refusal {
    pub fn new(status: Status) -> Self {
        let mut code = status.code();
        if matches!(code, Code::Unknown | Code::Cancelled) && status.details().is_empty() {
            code = Code::Unavailable; // The stack's words for a connection that broke; the server's have details.
        }
        let mut message = status.message().to_string();
        let (reason, metadata) = match status.get_details_error_info() {
            Some(info) => (info.reason, info.metadata),
            None => (code_name(code), HashMap::new()),
        };
        if reason == "UNAVAILABLE" {
            message += "; is `memory-ranker serve` running there?";
        }
        let bad = status.get_details_bad_request().map(|bad| bad.field_violations).unwrap_or_default();
        let violations = bad.into_iter().map(|each| (each.field, each.description)).collect();
        let retry_after = status.get_details_retry_info().and_then(|info| info.retry_delay);
        Refusal { code, reason, message, metadata, violations, retry_after }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.reason, self.message)?;
        self.violations.iter().try_for_each(|(field, words)| write!(out, "\n  {field}: {words}"))
    }
}

impl std::error::Error for Refusal {}

/// The name that other languages give a code too: DEADLINE_EXCEEDED.
pub fn code_name(code: Code) -> String {
    let mut name = String::new();
    for letter in format!("{code:?}").chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.extend(letter.to_uppercase());
    }
    name
}

/// Streams chunks, from where the stream stood if it broke before, and returns their acknowledgements.
pub async fn ingest(
    client: &mut MemoryServiceClient<Channel>,
    namespace: &str,
    stream_id: &str,
    chunks: Vec<Vec<Memory>>,
    deadline: Duration,
) -> Result<Vec<IngestMemoriesResponse>, Refusal> {
    let (sender, receiver) = mpsc::unbounded_channel();
    // The first message asks where to go on.
    let opening = IngestMemoriesRequest {
        namespace: namespace.into(),
        stream_id: stream_id.into(),
        ..Default::default()
    };
    let _ = sender.send(opening);
    let mut request = Request::new(UnboundedReceiverStream::new(receiver));
    request.set_timeout(deadline);
    let mut stream = client.ingest_memories(request).await.map_err(Refusal::new)?.into_inner();
    let last = chunks.len() as i64;
    let (mut chunks, mut sent, mut answers) = (chunks.into_iter(), None, Vec::new());
    while let Some(answer) = stream.message().await.map_err(Refusal::new)? {
        let first = sent.is_none();
        let sent = sent.get_or_insert_with(|| {
            chunks.by_ref().take(answer.acknowledged_sequence as usize).for_each(drop);
            answer.acknowledged_sequence
        });
        while *sent < last.min(answer.acknowledged_sequence + i64::from(answer.window)) {
            *sent += 1;
            let memories = chunks.next().unwrap_or_default();
            let _ = sender.send(IngestMemoriesRequest { sequence: *sent, memories, ..Default::default() });
        }
        let done = answer.acknowledged_sequence >= last;
        if !first {
            answers.push(answer);
        }
        if done {
            break;
        }
    }
    Ok(answers)
}
