package agent;

import com.google.gson.Gson;
import com.google.protobuf.Any;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.rpc.BadRequest;
import com.google.rpc.BadRequest.FieldViolation;
import com.google.rpc.ErrorInfo;
import com.google.rpc.RetryInfo;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.StatusProto;
import io.grpc.stub.StreamObserver;
import io.memoryranker.v1.IngestMemoriesRequest;
import io.memoryranker.v1.IngestMemoriesResponse;
import io.memoryranker.v1.Memory;
import io.memoryranker.v1.MemoryServiceGrpc.MemoryServiceStub;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import java.util.logging.Level;
import java.util.logging.Logger;

/** What an agent needs around the generated code: one channel, refusals that can be read, and streams. Copy it. */
final class Ranker {
  /**
   * Safe, because writes and Rank carry a request_id: what did arrive counts once. UNKNOWN is the stack's word for a
   * connection that breaks as the call begins; the server never says it.
   */
  private static final String SERVICE_CONFIG =
      """
      {"methodConfig": [{
        "name": [{"service": "memoryranker.v1.RankerService"}, {"service": "memoryranker.v1.MemoryService"}],
        "retryPolicy": {
          "maxAttempts": 5, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2,
          "retryableStatusCodes": ["UNAVAILABLE", "UNKNOWN"]
        }
      }]}
      """;

  /** Its warnings tell that a Unix socket has no SO_KEEPALIVE, at every connection. Held, or its level is forgotten. */
  private static final Logger BOOTSTRAP = Logger.getLogger("io.grpc.netty.shaded.io.netty.bootstrap");

  private Ranker() {}

  /** A channel to unix:PATH or HOST:PORT. Make one and share it: it reconnects by itself. */
  @SuppressWarnings("unchecked")
  static ManagedChannel connect(String address) {
    if (address == null || address.isEmpty()) {
      throw new IllegalArgumentException("no address: give unix:PATH or HOST:PORT");
    }
    BOOTSTRAP.setLevel(Level.SEVERE);
    return Grpc.newChannelBuilder(address, InsecureChannelCredentials.create())
        .proxyDetector(server -> null) // A web proxy has no business between two processes of one machine.
        .defaultServiceConfig(new Gson().fromJson(SERVICE_CONFIG, Map.class))
        .enableRetry()
        .build();
  }

  /** A call that failed, with everything that the server said about it. */
  static final class Refusal extends RuntimeException {
    final Status.Code code;

    /** The server's stable name for what went wrong; of a failure on the way, the code's name. */
    final String reason;

    final String words;
    final Map<String, String> metadata;
    final List<FieldViolation> violations;

    /** Null where the server said nothing of it. */
    final Duration retryAfter;

    private Refusal(
        StatusRuntimeException cause, ErrorInfo info, String words, List<FieldViolation> violations, Duration pause) {
      super(text(info.getReason(), words, violations), cause);
      this.code = cause.getStatus().getCode();
      this.reason = info.getReason();
      this.words = words;
      this.metadata = info.getMetadataMap();
      this.violations = violations;
      this.retryAfter = pause;
    }

    private static String text(String reason, String words, List<FieldViolation> violations) {
      StringBuilder lines = new StringBuilder(reason + ": " + words);
      violations.forEach(each -> lines.append("\n  " + each.getField() + ": " + each.getDescription()));
      return lines.toString();
    }

    /** Reads what a call threw. */
    static Refusal of(StatusRuntimeException error) {
      Status status = error.getStatus();
      ErrorInfo info = ErrorInfo.newBuilder().setReason(status.getCode().name()).build();
      String words = status.getDescription() == null ? "" : status.getDescription();
      List<FieldViolation> violations = List.of();
      Duration pause = null;
      boolean answered = false;
      com.google.rpc.Status details = StatusProto.fromThrowable(error);
      try {
        for (Any detail : details == null ? List.<Any>of() : details.getDetailsList()) {
          if (detail.is(ErrorInfo.class)) {
            info = detail.unpack(ErrorInfo.class);
            answered = true;
          } else if (detail.is(BadRequest.class)) {
            violations = detail.unpack(BadRequest.class).getFieldViolationsList();
          } else if (detail.is(RetryInfo.class)) {
            var delay = detail.unpack(RetryInfo.class).getRetryDelay();
            pause = Duration.ofSeconds(delay.getSeconds(), delay.getNanos());
          }
        }
      } catch (InvalidProtocolBufferException broken) {
        words += " (and details that cannot be read)";
      }
      if (status.getCode() == Status.Code.UNAVAILABLE && !answered) {
        words += status.getCause() == null ? "" : ": " + status.getCause().getMessage();
        words += "; is `memory-ranker serve` running there?";
      }
      return new Refusal(error, info, words, violations, pause);
    }
  }

  /** Streams chunks, from where the stream stood if it broke before, and returns their acknowledgements. */
  static List<IngestMemoriesResponse> ingest(
      MemoryServiceStub stub, String namespace, String streamId, List<List<Memory>> chunks, Duration deadline) {
    var done = new CompletableFuture<List<IngestMemoriesResponse>>();
    var receiver = new Acknowledgements(chunks, done);
    var sender =
        stub.withWaitForReady()
            .withDeadlineAfter(deadline.toMillis(), TimeUnit.MILLISECONDS)
            .ingestMemories(receiver);
    receiver.sender = sender;
    // The first message asks where to go on.
    sender.onNext(IngestMemoriesRequest.newBuilder().setNamespace(namespace).setStreamId(streamId).build());
    try {
      return done.join();
    } catch (CompletionException error) {
      throw error.getCause() instanceof StatusRuntimeException refused ? refused : error;
    }
  }

  /** Sends on as far as the window allows, whenever an answer comes. */
  private static final class Acknowledgements implements StreamObserver<IngestMemoriesResponse> {
    private final List<List<Memory>> chunks;
    private final CompletableFuture<List<IngestMemoriesResponse>> done;
    private final List<IngestMemoriesResponse> answers = new ArrayList<>();
    private volatile StreamObserver<IngestMemoriesRequest> sender;
    private long sent = -1;

    Acknowledgements(List<List<Memory>> chunks, CompletableFuture<List<IngestMemoriesResponse>> done) {
      this.chunks = chunks;
      this.done = done;
    }

    @Override
    public void onNext(IngestMemoriesResponse answer) {
      long acknowledged = answer.getAcknowledgedSequence();
      if (sent < 0) {
        sent = acknowledged;
      } else {
        answers.add(answer);
      }
      while (sent < Math.min(chunks.size(), acknowledged + answer.getWindow())) {
        List<Memory> chunk = chunks.get((int) sent);
        sent++;
        sender.onNext(IngestMemoriesRequest.newBuilder().setSequence(sent).addAllMemories(chunk).build());
      }
      if (acknowledged >= chunks.size()) {
        sender.onCompleted();
        done.complete(answers);
      }
    }

    @Override
    public void onError(Throwable error) {
      done.completeExceptionally(error);
    }

    @Override
    public void onCompleted() {
      done.complete(answers);
    }
  }
}
