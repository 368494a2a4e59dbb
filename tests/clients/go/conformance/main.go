// Runs the scenario: conformance SCENARIO ADDRESS.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	v1 "example.com/agent/gen/memoryranker/v1"
	"example.com/agent/ranker"
)

type object = map[string]any

type step struct {
	Name         string            `json:"name"`
	Call         string            `json:"call"`
	Control      string            `json:"control"`
	Request      object            `json:"request"`
	DeadlineMs   int               `json:"deadline_ms"`
	WaitForReady *bool             `json:"wait_for_ready"`
	Expect       []object          `json:"expect"`
	Refused      []object          `json:"refused"`
	Save         map[string]string `json:"save"`
}

// A call has JSON on both sides.
type call func(ctx context.Context, request any, wait bool) (any, error)

func main() {
	text, err := os.ReadFile(os.Args[1])
	must(err)
	var scenario struct {
		Steps []step `json:"steps"`
	}
	must(json.Unmarshal(text, &scenario))
	conn, err := ranker.Dial(os.Args[2])
	must(err)
	defer conn.Close()
	calls := callsOver(conn)
	known := object{"namespace": "conformance"}
	input := bufio.NewReader(os.Stdin)
	exit := 0
	for _, each := range scenario.Steps {
		if problems := run(each, calls, known, input); len(problems) > 0 {
			fmt.Printf("FAILED %s: %v\n", each.Name, problems)
			exit = 1
		} else {
			fmt.Printf("ok %s\n", each.Name)
		}
	}
	os.Exit(exit)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// run returns what is wrong with a step; nothing, if all is as expected.
func run(each step, calls map[string]call, known object, input *bufio.Reader) []string {
	if each.Control != "" {
		fmt.Printf("control %s\n", each.Control)
		if answer, _ := input.ReadString('\n'); answer != "done\n" {
			return []string{"nobody did " + each.Control}
		}
		return nil
	}
	deadline := 10 * time.Second
	if each.DeadlineMs > 0 {
		deadline = time.Duration(each.DeadlineMs) * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	wait := each.WaitForReady == nil || *each.WaitForReady
	found, err := calls[each.Call](ctx, filled(each.Request, known), wait)
	checks := each.Expect
	if err != nil {
		found, checks = shown(ranker.Explain(err)), each.Refused
	}
	if checks == nil {
		return []string{fmt.Sprintf("was not to end with %v, %v", found, err)}
	}
	for name, path := range each.Save {
		known[name] = at(found, path)
	}
	var problems []string
	for _, check := range checks {
		if !holds(check, found, known) {
			problems = append(problems, fmt.Sprintf("%v found %v", check, at(found, check["path"].(string))))
		}
	}
	return problems
}

func shown(refusal *ranker.Refusal) object {
	violations := []any{}
	for _, each := range refusal.Violations {
		violations = append(violations, object{"field": each.Field, "description": each.Description})
	}
	metadata := object{}
	for name, value := range refusal.Metadata {
		metadata[name] = value
	}
	return object{
		"code": refusal.Name(), "reason": refusal.Reason, "message": refusal.Message, "metadata": metadata,
		"violations": violations, "text": refusal.Error(),
	}
}

func callsOver(conn *grpc.ClientConn) map[string]call {
	memories, rankers := v1.NewMemoryServiceClient(conn), v1.NewRankerServiceClient(conn)
	admin := v1.NewAdminServiceClient(conn)
	pageOf := unary(memories.ListMemories)
	return map[string]call{
		"UpsertMemories": unary(memories.UpsertMemories),
		"GetMemory":      unary(memories.GetMemory),
		"Rank":           unary(rankers.Rank),
		"ReportUse":      unary(rankers.ReportUse),
		"GetPacket":      unary(rankers.GetPacket),
		"GetStatus":      unary(admin.GetStatus),
		"ListMemories": func(ctx context.Context, request any, wait bool) (any, error) {
			asked, found := request.(object), []any{}
			for {
				page, err := pageOf(ctx, asked, wait)
				if err != nil {
					return nil, err
				}
				found = append(found, at(page, "memories").([]any)...)
				token, more := at(page, "nextPageToken").(string)
				if !more || token == "" {
					return object{"memories": found}, nil
				}
				asked["pageToken"] = token
			}
		},
		"Ingest": func(ctx context.Context, request any, _ bool) (any, error) {
			var chunks [][]*v1.Memory
			for _, chunk := range at(request, "chunks").([]any) {
				var memories []*v1.Memory
				for _, each := range chunk.([]any) {
					memory := &v1.Memory{}
					fromJSON(each, memory)
					memories = append(memories, memory)
				}
				chunks = append(chunks, memories)
			}
			namespace, stream := at(request, "namespace").(string), at(request, "streamId").(string)
			answers, err := ranker.Ingest(ctx, memories, namespace, stream, chunks)
			if err != nil {
				return nil, err
			}
			acknowledged, created, rejections := int64(0), int32(0), []any{}
			for _, answer := range answers {
				acknowledged, created = max(acknowledged, answer.AcknowledgedSequence), created+answer.CreatedCount
				for _, each := range answer.Rejections {
					rejections = append(rejections, object{
						"memoryId": each.Result.MemoryId, "message": each.Result.Status.Message,
					})
				}
			}
			return object{
				"acknowledgedSequence": float64(acknowledged), "createdCount": float64(created), "rejections": rejections,
			}, nil
		},
	}
}

// unary makes a call with JSON on both sides of a method of a generated client.
func unary[Request any, PRequest interface {
	*Request
	proto.Message
}, Response proto.Message](
	method func(context.Context, PRequest, ...grpc.CallOption) (Response, error),
) call {
	return func(ctx context.Context, request any, wait bool) (any, error) {
		message := PRequest(new(Request))
		fromJSON(request, message)
		answer, err := method(ctx, message, grpc.WaitForReady(wait))
		if err != nil {
			return nil, err
		}
		text, err := protojson.Marshal(answer)
		must(err)
		var found any
		must(json.Unmarshal(text, &found))
		return found, nil
	}
}

func fromJSON(value any, message proto.Message) {
	text, err := json.Marshal(value)
	must(err)
	must(protojson.Unmarshal(text, message))
}
