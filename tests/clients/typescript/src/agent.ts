// An agent: it remembers, ranks, uses, and says what it used.

import { randomUUID } from "node:crypto";
import { ReportUseRequest } from "../gen/memoryranker/v1/feedback.js";
import { UpsertMemoriesRequest } from "../gen/memoryranker/v1/memory.js";
import { RankRequest } from "../gen/memoryranker/v1/ranker.js";
import { Memory } from "../gen/memoryranker/v1/types.js";
import { call, connect, ingest, Refusal } from "./ranker.js";

const address = process.env.MEMORY_RANKER_LISTEN;
if (!address) {
  console.error("set MEMORY_RANKER_LISTEN to unix:PATH or HOST:PORT, where `memory-ranker serve` listens");
  process.exit(1);
}
const { memory, ranker, close } = connect(address); // one for the whole agent
const namespace = "agent-7";

try {
  // Remember: one batch, and a stream for anything longer; its id resumes it, should it break.
  const canary = Memory.fromPartial({ id: "canary", content: "Deploys need a green canary for 30 minutes" });
  const batch = UpsertMemoriesRequest.fromPartial({ namespace, memories: [canary], requestId: randomUUID() });
  await call(memory, memory.upsertMemories, batch);
  const chunks = [1, 2].map((n) => [Memory.fromPartial({ id: `note-${n}`, content: `Note ${n} of the handbook` })]);
  for await (const { sequence } of ingest(memory, namespace, randomUUID(), chunks, 10_000)) {
    console.log(`chunk ${sequence} is durable`);
  }

  // Rank, use, report.
  const task = RankRequest.fromPartial({ namespace, task: "deploy the payment service", requestId: randomUUID() });
  const packet = await call(ranker, ranker.rank, task, { deadlineMs: 2000 });
  for (const item of packet.items) {
    console.log(`${item.score.toFixed(3)}  ${item.memory?.content}`);
  }
  const used = packet.items.filter((item) => item.memory?.content.includes("canary"));
  const usedMemoryIds = used.map((item) => item.memory!.id);
  await call(ranker, ranker.reportUse, ReportUseRequest.fromPartial({ packetId: packet.packetId, usedMemoryIds }));
} catch (error) {
  console.error(error instanceof Refusal ? error.message : error);
  process.exitCode = 1;
} finally {
  close();
}
