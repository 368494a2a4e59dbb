package agent;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Message;
import com.google.protobuf.util.JsonFormat;
import com.google.protobuf.util.JsonFormat.TypeRegistry;
import com.google.rpc.BadRequest;
import com.google.rpc.ErrorInfo;
import io.grpc.ManagedChannel;
import io.grpc.StatusRuntimeException;
import io.grpc.stub.AbstractBlockingStub;
import io.memoryranker.v1.AdminServiceGrpc;
import io.memoryranker.v1.GetMemoryRequest;
import io.memoryranker.v1.GetPacketRequest;
import io.memoryranker.v1.GetStatusRequest;
import io.memoryranker.v1.IngestMemoriesResponse;
import io.memoryranker.v1.ListMemoriesRequest;
import io.memoryranker.v1.Memory;
import io.memoryranker.v1.MemoryServiceGrpc;
import io.memoryranker.v1.RankRequest;
import io.memoryranker.v1.RankerServiceGrpc;
import io.memoryranker.v1.ReportUseRequest;
import io.memoryranker.v1.UpsertMemoriesRequest;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.BiFunction;

/** Runs the scenario: Conformance SCENARIO ADDRESS. */
public final class Conformance {
  private static final TypeRegistry DETAILS =
      TypeRegistry.newBuilder().add(ErrorInfo.getDescriptor()).add(BadRequest.getDescriptor()).build();

  /** A call with JSON on both sides. */
  private interface Call {
    JsonObject of(JsonObject request, Duration deadline, boolean wait) throws InvalidProtocolBufferException;
  }

  private final Map<String, Call> calls = new LinkedHashMap<>();
  private final JsonObject known = new JsonObject();
  private final BufferedReader input =
      new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
  private final PrintStream output = new PrintStream(System.out, true, StandardCharsets.UTF_8);

  private Conformance(ManagedChannel channel) {
    var memories = MemoryServiceGrpc.newBlockingStub(channel);
    var ranker = RankerServiceGrpc.newBlockingStub(channel);
    var admin = AdminServiceGrpc.newBlockingStub(channel);
    known.addProperty("namespace", "conformance");
    calls.put("UpsertMemories", unary(memories, UpsertMemoriesRequest.getDefaultInstance(), (s, q) -> s.upsertMemories(q)));
    calls.put("GetMemory", unary(memories, GetMemoryRequest.getDefaultInstance(), (s, q) -> s.getMemory(q)));
    calls.put("Rank", unary(ranker, RankRequest.getDefaultInstance(), (s, q) -> s.rank(q)));
    calls.put("ReportUse", unary(ranker, ReportUseRequest.getDefaultInstance(), (s, q) -> s.reportUse(q)));
    calls.put("GetPacket", unary(ranker, GetPacketRequest.getDefaultInstance(), (s, q) -> s.getPacket(q)));
    calls.put("GetStatus", unary(admin, GetStatusRequest.getDefaultInstance(), (s, q) -> s.getStatus(q)));
    Call page = unary(memories, ListMemoriesRequest.getDefaultInstance(), (s, q) -> s.listMemories(q));
    calls.put("ListMemories", (request, deadline, wait) -> list(page, request, deadline, wait));
    calls.put("Ingest", (request, deadline, wait) -> ingest(channel, request, deadline));
  }

  @SuppressWarnings("unchecked")
  private static <S extends AbstractBlockingStub<S>, Q extends Message> Call unary(
      S stub, Q empty, BiFunction<S, Q, Message> method) {
    return (request, deadline, wait) -> {
      S patient = stub.withDeadlineAfter(deadline.toMillis(), TimeUnit.MILLISECONDS);
      Q message = (Q) parsed(request, empty.newBuilderForType());
      return shown(method.apply(wait ? patient.withWaitForReady() : patient, message));
    };
  }

  private static Message parsed(JsonElement value, Message.Builder builder) throws InvalidProtocolBufferException {
    JsonFormat.parser().merge(value.toString(), builder);
    return builder.build();
  }

  private static JsonObject shown(Message message) throws InvalidProtocolBufferException {
    return JsonParser.parseString(JsonFormat.printer().usingTypeRegistry(DETAILS).print(message)).getAsJsonObject();
  }

  private static JsonObject list(Call page, JsonObject request, Duration deadline, boolean wait)
      throws InvalidProtocolBufferException {
    JsonArray memories = new JsonArray();
    JsonObject asked = request.deepCopy();
    while (true) {
      JsonObject found = page.of(asked, deadline, wait);
      memories.addAll(found.getAsJsonArray("memories"));
      if (!found.has("nextPageToken")) {
        JsonObject all = new JsonObject();
        all.add("memories", memories);
        return all;
      }
      asked.add("pageToken", found.get("nextPageToken"));
    }
  }

  private static JsonObject ingest(ManagedChannel channel, JsonObject request, Duration deadline)
      throws InvalidProtocolBufferException {
    List<List<Memory>> chunks = new ArrayList<>();
    for (JsonElement chunk : request.getAsJsonArray("chunks")) {
      List<Memory> messages = new ArrayList<>();
      for (JsonElement each : chunk.getAsJsonArray()) {
        messages.add((Memory) parsed(each, Memory.newBuilder()));
      }
      chunks.add(messages);
    }
    String namespace = request.get("namespace").getAsString();
    String stream = request.get("streamId").getAsString();
    long acknowledged = 0;
    int created = 0;
    JsonArray rejections = new JsonArray();
    for (IngestMemoriesResponse answer :
        Ranker.ingest(MemoryServiceGrpc.newStub(channel), namespace, stream, chunks, deadline)) {
      acknowledged = Math.max(acknowledged, answer.getAcknowledgedSequence());
      created += answer.getCreatedCount();
      for (var each : answer.getRejectionsList()) {
        JsonObject rejection = new JsonObject();
        rejection.addProperty("memoryId", each.getResult().getMemoryId());
        rejection.addProperty("message", each.getResult().getStatus().getMessage());
        rejections.add(rejection);
      }
    }
    JsonObject found = new JsonObject();
    found.addProperty("acknowledgedSequence", acknowledged);
    found.addProperty("createdCount", created);
    found.add("rejections", rejections);
    return found;
  }

  private static JsonObject refused(Ranker.Refusal refusal) {
    JsonArray violations = new JsonArray();
    for (var each : refusal.violations) {
      JsonObject violation = new JsonObject();
      violation.addProperty("field", each.getField());
      violation.addProperty("description", each.getDescription());
      violations.add(violation);
    }
    JsonObject metadata = new JsonObject();
    refusal.metadata.forEach(metadata::addProperty);
    JsonObject found = new JsonObject();
    found.addProperty("code", refusal.code.name());
    found.addProperty("reason", refusal.reason);
    found.addProperty("message", refusal.words);
    found.addProperty("text", refusal.getMessage());
    found.add("violations", violations);
    found.add("metadata", metadata);
    return found;
  }

  /** What is wrong with a step; nothing, if all is as expected. */
  private List<String> run(JsonObject step) throws IOException {
    if (step.has("control")) {
      output.println("control " + step.get("control").getAsString());
      return "done".equals(input.readLine()) ? List.of() : List.of("nobody did it");
    }
    Duration deadline = Duration.ofMillis(step.has("deadline_ms") ? step.get("deadline_ms").getAsLong() : 10_000);
    boolean wait = !step.has("wait_for_ready") || step.get("wait_for_ready").getAsBoolean();
    JsonObject found;
    JsonElement checks;
    try {
      JsonObject request = Checks.filled(step.get("request"), known).getAsJsonObject();
      found = calls.get(step.get("call").getAsString()).of(request, deadline, wait);
      checks = step.get("expect");
    } catch (StatusRuntimeException error) {
      found = refused(Ranker.Refusal.of(error));
      checks = step.get("refused");
    }
    if (checks == null) {
      return List.of("was not to end with " + found);
    }
    if (step.has("save")) {
      for (var each : step.getAsJsonObject("save").entrySet()) {
        JsonElement value = Checks.at(found, each.getValue().getAsString());
        known.add(each.getKey(), value == null ? JsonNull.INSTANCE : value);
      }
    }
    List<String> problems = new ArrayList<>();
    for (JsonElement each : checks.getAsJsonArray()) {
      JsonObject check = each.getAsJsonObject();
      if (!Checks.holds(check, found, known)) {
        problems.add(check + " found " + Checks.at(found, check.get("path").getAsString()));
      }
    }
    return problems;
  }

  public static void main(String[] arguments) throws IOException {
    ManagedChannel channel = Ranker.connect(arguments[1]);
    Conformance conformance = new Conformance(channel);
    boolean failed = false;
    JsonObject scenario = JsonParser.parseString(Files.readString(Path.of(arguments[0]))).getAsJsonObject();
    for (JsonElement each : scenario.getAsJsonArray("steps")) {
      JsonObject step = each.getAsJsonObject();
      List<String> problems = conformance.run(step);
      failed |= !problems.isEmpty();
      String name = step.get("name").getAsString();
      conformance.output.println(problems.isEmpty() ? "ok " + name : "FAILED " + name + ": " + problems);
    }
    channel.shutdownNow();
    System.exit(failed ? 1 : 0);
  }
}
