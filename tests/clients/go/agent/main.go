// An agent: it remembers, ranks, uses, and says what it used.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"

	v1 "example.com/agent/gen/memoryranker/v1"
	"example.com/agent/ranker"
)

func run(ctx context.Context) error {
	conn, err := ranker.Dial(os.Getenv("MEMORY_RANKER_LISTEN")) // one for the whole agent
	if err != nil {
		return err
	}
	defer conn.Close()
	memories, rankers := v1.NewMemoryServiceClient(conn), v1.NewRankerServiceClient(conn)
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()

	// Remember: one batch, and a stream for anything longer; its id resumes it, should it break.
	batch := []*v1.Memory{{Id: "canary", Content: "Deploys need a green canary for 30 minutes", Kind: "decision"}}
	if _, err := memories.UpsertMemories(ctx, &v1.UpsertMemoriesRequest{
		Namespace: "agent-7", Memories: batch, RequestId: uuid.NewString(),
	}); err != nil {
		return err
	}
	chunks := [][]*v1.Memory{{{Id: "note-1", Content: "First note"}}, {{Id: "note-2", Content: "Second note"}}}
	if _, err := ranker.Ingest(ctx, memories, "agent-7", uuid.NewString(), chunks); err != nil {
		return err
	}

	// Rank, use, report.
	packet, err := rankers.Rank(ctx, &v1.RankRequest{
		Namespace: "agent-7", Task: "deploy the payment service", RequestId: uuid.NewString(),
	})
	if err != nil {
		return err
	}
	var used []string
	for _, item := range packet.Items {
		fmt.Printf("%.3f  %s\n", item.Score, item.Memory.Content)
		if strings.Contains(item.Memory.Content, "canary") {
			used = append(used, item.Memory.Id)
		}
	}
	_, err = rankers.ReportUse(ctx, &v1.ReportUseRequest{PacketId: packet.PacketId, UsedMemoryIds: used})
	return err
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(ranker.Explain(err))
	}
}
