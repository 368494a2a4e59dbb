// What an agent needs around the generated code: one channel, calls as promises, refusals that can be read, and streams.
// Copy it.

import {
  type CallOptions,
  type ChannelOptions,
  type ClientUnaryCall,
  credentials,
  Metadata,
  type ServiceError,
  status,
} from "@grpc/grpc-js";
import { BadRequest, ErrorInfo, RetryInfo } from "../gen/google/rpc/error_details.js";
import { Status } from "../gen/google/rpc/status.js";
import { AdminServiceClient } from "../gen/memoryranker/v1/admin.js";
import { type IngestMemoriesResponse, IngestMemoriesRequest, MemoryServiceClient } from "../gen/memoryranker/v1/memory.js";
import { RankerServiceClient } from "../gen/memoryranker/v1/ranker.js";
import type { Memory } from "../gen/memoryranker/v1/types.js";

// Safe, because writes and Rank carry a requestId: what did arrive counts once.
const SERVICE_CONFIG = {
  methodConfig: [
    {
      name: [{ service: "memoryranker.v1.RankerService" }, { service: "memoryranker.v1.MemoryService" }],
      retryPolicy: {
        maxAttempts: 5,
        initialBackoff: "0.1s",
        maxBackoff: "1s",
        backoffMultiplier: 2,
        retryableStatusCodes: ["UNAVAILABLE"],
      },
    },
  ],
};

const OPTIONS: ChannelOptions = {
  "grpc.enable_http_proxy": 0, // A web proxy has no business between two processes of one machine.
  "grpc.service_config": JSON.stringify(SERVICE_CONFIG),
  "grpc.initial_reconnect_backoff_ms": 50,
  "grpc.max_reconnect_backoff_ms": 1000,
};

/** The three services at unix:PATH or HOST:PORT, over one channel. Make them once; the channel reconnects by itself. */
export function connect(address: string) {
  if (!address) {
    throw new Error("no address: give unix:PATH or HOST:PORT");
  }
  const insecure = credentials.createInsecure();
  const ranker = new RankerServiceClient(address, insecure, OPTIONS);
  const shared = { ...OPTIONS, channelOverride: ranker.getChannel() };
  return {
    ranker,
    memory: new MemoryServiceClient(address, insecure, shared),
    admin: new AdminServiceClient(address, insecure, shared),
    close: () => ranker.close(),
  };
}

type Method<Request, Response> = (
  request: Request,
  metadata: Metadata,
  options: Partial<CallOptions>,
  callback: (error: ServiceError | null, response: Response) => void,
) => ClientUnaryCall;

/** Calls a method of a generated client: `await call(memory, memory.getMemory, request)`. */
export function call<Client, Request, Response>(
  client: Client,
  method: Method<Request, Response>,
  request: Request,
  { deadlineMs = 5000, waitForReady = false } = {},
): Promise<Response> {
  return new Promise((resolve, reject) => {
    const done = (error: ServiceError | null, response: Response) =>
      error ? reject(new Refusal(error)) : resolve(response);
    method.call(client, request, new Metadata({ waitForReady }), { deadline: Date.now() + deadlineMs }, done);
  });
}

/** A call that failed, with everything that the server said about it. */
export class Refusal extends Error {
  readonly code: string;
  readonly details: string;
  /** The server's stable name for what went wrong; of a failure on the way, the code's name. */
  readonly reason: string;
  readonly metadata: Record<string, string> = {};
  readonly violations: { field: string; description: string }[] = [];
  readonly retryAfterMs?: number;

  constructor(error: ServiceError) {
    let reason = status[error.code];
    let details = error.details;
    let metadata = {};
    let violations: { field: string; description: string }[] = [];
    let retryAfterMs: number | undefined;
    for (const encoded of error.metadata?.get("grpc-status-details-bin") ?? []) {
      for (const { typeUrl, value } of Status.decode(encoded as Buffer).details) {
        if (typeUrl.endsWith("/google.rpc.ErrorInfo")) {
          ({ reason, metadata } = ErrorInfo.decode(value));
        } else if (typeUrl.endsWith("/google.rpc.BadRequest")) {
          violations = BadRequest.decode(value).fieldViolations;
        } else if (typeUrl.endsWith("/google.rpc.RetryInfo")) {
          const delay = RetryInfo.decode(value).retryDelay;
          retryAfterMs = delay && delay.seconds * 1000 + delay.nanos / 1e6;
        }
      }
    }
    if (reason === "UNAVAILABLE") {
      details += "; is `memory-ranker serve` running there?";
    }
    const lines = violations.map(({ field, description }) => `${field}: ${description}`);
    super([`${reason}: ${details}`, ...lines].join("\n  "));
    this.code = status[error.code];
    Object.assign(this, { reason, details, metadata, violations, retryAfterMs });
    this.reason = reason;
    this.details = details;
  }
}

/** Streams chunks, from where the stream stood if it broke before, and yields their acknowledgements. */
export async function* ingest(
  client: MemoryServiceClient,
  namespace: string,
  streamId: string,
  chunks: Memory[][],
  deadlineMs: number,
): AsyncGenerator<IngestMemoriesResponse> {
  const metadata = new Metadata({ waitForReady: true });
  const stream = client.ingestMemories(metadata, { deadline: Date.now() + deadlineMs });
  try {
    // The first message asks where to go on.
    stream.write(IngestMemoriesRequest.fromPartial({ namespace, streamId }));
    let sent: number | undefined;
    for await (const answer of stream as AsyncIterable<IngestMemoriesResponse>) {
      if (sent === undefined) {
        sent = answer.acknowledgedSequence;
      } else {
        yield answer;
      }
      while (sent < Math.min(chunks.length, answer.acknowledgedSequence + answer.window)) {
        sent += 1;
        stream.write(IngestMemoriesRequest.fromPartial({ sequence: sent, memories: chunks[sent - 1] }));
      }
      if (answer.acknowledgedSequence >= chunks.length) {
        break;
      }
    }
  } catch (error) {
    throw new Refusal(error as ServiceError);
  } finally {
    stream.end();
  }
}
