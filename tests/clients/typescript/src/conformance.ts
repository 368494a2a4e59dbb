// Runs the scenario: node conformance.js SCENARIO ADDRESS.

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { GetStatusRequest, GetStatusResponse } from "../gen/memoryranker/v1/admin.js";
import { ReportUseRequest, ReportUseResponse } from "../gen/memoryranker/v1/feedback.js";
import {
  GetMemoryRequest,
  GetMemoryResponse,
  ListMemoriesRequest,
  ListMemoriesResponse,
  UpsertMemoriesRequest,
  UpsertMemoriesResponse,
} from "../gen/memoryranker/v1/memory.js";
import { GetPacketRequest, GetPacketResponse, RankRequest, RankResponse } from "../gen/memoryranker/v1/ranker.js";
import { Memory } from "../gen/memoryranker/v1/types.js";
import { at, filled, holds, type Json } from "./checks.js";
import { call, connect, ingest, Refusal } from "./ranker.js";

type Options = { deadlineMs: number; waitForReady: boolean };
/** A call with JSON on both sides. */
type Call = (request: Json, options: Options) => Promise<Json>;

const [scenario, address] = process.argv.slice(2);
const { ranker, memory, admin, close } = connect(address);
const known: Json = { namespace: "conformance" };
const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

function unary<Request, Response>(
  client: object,
  method: Parameters<typeof call<object, Request, Response>>[1],
  request: { fromJSON(value: Json): Request },
  response: { toJSON(message: Response): unknown },
): Call {
  return async (asked, options) => response.toJSON(await call(client, method, request.fromJSON(asked), options)) as Json;
}

const pageOf = unary(memory, memory.listMemories, ListMemoriesRequest, ListMemoriesResponse);

const calls: Record<string, Call> = {
  UpsertMemories: unary(memory, memory.upsertMemories, UpsertMemoriesRequest, UpsertMemoriesResponse),
  GetMemory: unary(memory, memory.getMemory, GetMemoryRequest, GetMemoryResponse),
  Rank: unary(ranker, ranker.rank, RankRequest, RankResponse),
  ReportUse: unary(ranker, ranker.reportUse, ReportUseRequest, ReportUseResponse),
  GetPacket: unary(ranker, ranker.getPacket, GetPacketRequest, GetPacketResponse),
  GetStatus: unary(admin, admin.getStatus, GetStatusRequest, GetStatusResponse),
  async ListMemories(asked, options) {
    const memories = [];
    for (let pageToken = ""; ; ) {
      const page = await pageOf({ ...asked, pageToken }, options);
      memories.push(...page.memories);
      pageToken = page.nextPageToken ?? "";
      if (!pageToken) {
        return { memories };
      }
    }
  },
  async Ingest({ namespace, streamId, chunks }, { deadlineMs }) {
    const messages = chunks.map((chunk: Json[]) => chunk.map(Memory.fromJSON));
    const found: Json = { acknowledgedSequence: 0, createdCount: 0, rejections: [] };
    for await (const answer of ingest(memory, namespace, streamId, messages, deadlineMs)) {
      found.acknowledgedSequence = Math.max(found.acknowledgedSequence, answer.acknowledgedSequence);
      found.createdCount += answer.createdCount;
      for (const { result } of answer.rejections) {
        found.rejections.push({ memoryId: result?.memoryId, message: result?.status?.message });
      }
    }
    return found;
  },
};

/** What is wrong with a step; nothing, if all is as expected. */
async function run(step: Json): Promise<string[]> {
  if (step.control) {
    console.log(`control ${step.control}`);
    return (await answers.next()).value === "done" ? [] : [`nobody did ${step.control}`];
  }
  const options = { deadlineMs: step.deadline_ms ?? 10_000, waitForReady: step.wait_for_ready ?? true };
  let found: Json;
  let checks: Json[] | undefined = step.expect;
  try {
    found = await calls[step.call](filled(step.request, known), options);
  } catch (error) {
    if (!(error instanceof Refusal)) {
      throw error;
    }
    const { code, reason, details, metadata, violations } = error;
    found = { code, reason, message: details, metadata, violations, text: error.message };
    checks = step.refused;
  }
  if (!checks) {
    return [`was not to end with ${JSON.stringify(found)}`];
  }
  for (const [name, path] of Object.entries(step.save ?? {})) {
    known[name] = at(found, path as string);
  }
  const failed = checks.filter((check) => !holds(check, found, known));
  return failed.map((check) => `${JSON.stringify(check)} found ${JSON.stringify(at(found, check.path))}`);
}

for (const step of JSON.parse(readFileSync(scenario, "utf8")).steps) {
  const problems = await run(step);
  if (problems.length) {
    process.exitCode = 1;
  }
  console.log(problems.length ? `FAILED ${step.name}: ${problems.join("; ")}` : `ok ${step.name}`);
}
close();
process.exit();
