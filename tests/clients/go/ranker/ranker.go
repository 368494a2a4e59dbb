// Package ranker is what an agent needs around the generated code: one connection, refusals that can be read, and
// streams. Copy it.
package ranker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	v1 "example.com/agent/gen/memoryranker/v1"
)

// Safe, because writes and Rank carry a request_id: what did arrive counts once.
const serviceConfig = `{"methodConfig": [{
	"name": [{"service": "memoryranker.v1.RankerService"}, {"service": "memoryranker.v1.MemoryService"}],
	"retryPolicy": {
		"maxAttempts": 5, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2,
		"retryableStatusCodes": ["UNAVAILABLE"]
	}
}]}`

// Dial returns a connection to unix:PATH or HOST:PORT. Make one and share it: it reconnects by itself.
func Dial(address string) (*grpc.ClientConn, error) {
	if address == "" {
		return nil, errors.New("set MEMORY_RANKER_LISTEN to unix:PATH or HOST:PORT, where `memory-ranker serve` listens")
	}
	pauses := backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, MaxDelay: time.Second}
	return grpc.NewClient(address,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithNoProxy(), // A web proxy has no business between two processes of one machine.
		grpc.WithDefaultServiceConfig(serviceConfig),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: pauses, MinConnectTimeout: time.Second}),
	)
}

// Refusal is a call that failed, with everything that the server said about it.
type Refusal struct {
	Code       codes.Code
	Reason     string // The server's stable name for what went wrong; of a failure on the way, the code's name; before it, "".
	Message    string
	Metadata   map[string]string
	Violations []*errdetails.BadRequest_FieldViolation
	RetryAfter time.Duration
}

// Explain reads the error of a call; nil for nil.
func Explain(err error) *Refusal {
	if err == nil {
		return nil
	}
	found, ok := status.FromError(err)
	if !ok { // No call failed; it did not come to one.
		return &Refusal{Code: codes.Unknown, Message: err.Error()}
	}
	refusal := &Refusal{Code: found.Code(), Message: found.Message()}
	for _, detail := range found.Details() {
		switch detail := detail.(type) {
		case *errdetails.ErrorInfo:
			refusal.Reason, refusal.Metadata = detail.Reason, detail.Metadata
		case *errdetails.BadRequest:
			refusal.Violations = detail.FieldViolations
		case *errdetails.RetryInfo:
			refusal.RetryAfter = detail.RetryDelay.AsDuration()
		}
	}
	if refusal.Reason == "" {
		refusal.Reason = codeName(refusal.Code)
		if refusal.Code == codes.Unavailable {
			refusal.Message += "; is `memory-ranker serve` running there?"
		}
	}
	return refusal
}

func (r *Refusal) Error() string {
	lines := []string{strings.TrimPrefix(r.Reason+": "+r.Message, ": ")}
	for _, each := range r.Violations {
		lines = append(lines, fmt.Sprintf("%s: %s", each.Field, each.Description))
	}
	return strings.Join(lines, "\n  ")
}

// The name that other languages give a code too: DEADLINE_EXCEEDED rather than DeadlineExceeded.
func codeName(code codes.Code) string {
	var name strings.Builder
	for at, letter := range code.String() {
		if at > 0 && letter >= 'A' && letter <= 'Z' && code != codes.OK {
			name.WriteByte('_')
		}
		name.WriteRune(letter)
	}
	return strings.ToUpper(name.String())
}

// Name is the code's name as the API's documents write it.
func (r *Refusal) Name() string { return codeName(r.Code) }

// Ingest streams chunks, from where the stream stood if it broke before, and returns their acknowledgements.
func Ingest(
	ctx context.Context, client v1.MemoryServiceClient, namespace, streamID string, chunks [][]*v1.Memory,
) ([]*v1.IngestMemoriesResponse, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := client.IngestMemories(ctx, grpc.WaitForReady(true))
	if err != nil {
		return nil, err
	}
	// The first message asks where to go on.
	opening := &v1.IngestMemoriesRequest{Namespace: namespace, StreamId: streamID}
	if err := stream.Send(opening); err != nil {
		return nil, err
	}
	answer, err := stream.Recv()
	if err != nil {
		return nil, err
	}
	answers := []*v1.IngestMemoriesResponse{}
	sent, last := answer.AcknowledgedSequence, int64(len(chunks))
	for answer.AcknowledgedSequence < last {
		for sent < min(last, answer.AcknowledgedSequence+int64(answer.Window)) {
			sent++
			// If this fails, Recv says why.
			_ = stream.Send(&v1.IngestMemoriesRequest{Sequence: sent, Memories: chunks[sent-1]})
		}
		if answer, err = stream.Recv(); err != nil {
			return answers, err
		}
		answers = append(answers, answer)
	}
	return answers, stream.CloseSend()
}
