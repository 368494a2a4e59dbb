// Package agent is a memory-ranker client in Go: `go generate` makes gen/ from the .proto files, with buf on the path.
package agent

//go:generate buf generate ../../../proto --path ../../../proto/memoryranker
