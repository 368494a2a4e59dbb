package agent;

import io.grpc.ManagedChannel;
import io.grpc.StatusRuntimeException;
import io.memoryranker.v1.Memory;
import io.memoryranker.v1.MemoryServiceGrpc;
import io.memoryranker.v1.RankRequest;
import io.memoryranker.v1.RankResponse;
import io.memoryranker.v1.RankedItem;
import io.memoryranker.v1.RankerServiceGrpc;
import io.memoryranker.v1.ReportUseRequest;
import io.memoryranker.v1.UpsertMemoriesRequest;
import java.time.Duration;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.TimeUnit;

/** An agent: it remembers, ranks, uses, and says what it used. */
public final class Agent {
  private static Memory memory(String id, String content) {
    return Memory.newBuilder().setId(id).setContent(content).build();
  }

  private static void run(ManagedChannel channel) {
    var memories = MemoryServiceGrpc.newBlockingStub(channel);
    var ranker = RankerServiceGrpc.newBlockingStub(channel);
    String namespace = "agent-7";

    // Remember: one batch, and a stream for anything longer; its id resumes it, should it break.
    UpsertMemoriesRequest batch =
        UpsertMemoriesRequest.newBuilder()
            .setNamespace(namespace)
            .addMemories(memory("canary", "Deploys need a green canary for 30 minutes"))
            .setRequestId(UUID.randomUUID().toString())
            .build();
    memories.withDeadlineAfter(5, TimeUnit.SECONDS).upsertMemories(batch);
    var chunks = List.of(List.of(memory("note-1", "First note")), List.of(memory("note-2", "Second note")));
    String stream = UUID.randomUUID().toString();
    Ranker.ingest(MemoryServiceGrpc.newStub(channel), namespace, stream, chunks, Duration.ofSeconds(30));

    // Rank, use, report.
    RankRequest task =
        RankRequest.newBuilder()
            .setNamespace(namespace)
            .setTask("deploy the payment service")
            .setRequestId(UUID.randomUUID().toString())
            .build();
    RankResponse packet = ranker.withDeadlineAfter(2, TimeUnit.SECONDS).rank(task);
    ReportUseRequest.Builder report = ReportUseRequest.newBuilder().setPacketId(packet.getPacketId());
    for (RankedItem item : packet.getItemsList()) {
      System.out.printf("%.3f  %s%n", item.getScore(), item.getMemory().getContent());
      if (item.getMemory().getContent().contains("canary")) {
        report.addUsedMemoryIds(item.getMemory().getId());
      }
    }
    ranker.withDeadlineAfter(5, TimeUnit.SECONDS).reportUse(report.build());
  }

  public static void main(String[] arguments) {
    String address = System.getenv("MEMORY_RANKER_LISTEN");
    if (address == null || address.isEmpty()) {
      System.err.println("set MEMORY_RANKER_LISTEN to unix:PATH or HOST:PORT, where `memory-ranker serve` listens");
      System.exit(1);
    }
    ManagedChannel channel = Ranker.connect(address); // one for the whole agent
    try {
      run(channel);
    } catch (StatusRuntimeException error) {
      System.err.println(Ranker.Refusal.of(error).getMessage());
      System.exit(1);
    } finally {
      channel.shutdownNow();
    }
  }
}
