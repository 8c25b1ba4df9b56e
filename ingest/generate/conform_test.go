package generate

import (
	"testing"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/sourcetest"
)

func TestConform(t *testing.T) {
	kind := func(name string) func() (ingest.Source, error) {
		return func() (ingest.Source, error) {
			return Open(name, Options{Nodes: 70_000, Edges: 140_000, Dim: 8, Classes: 5, Seed: 3})
		}
	}
	triples := func() (ingest.Source, error) {
		return Open("kg", Options{Nodes: 70_000, Edges: 140_000, Classes: 5, Seed: 3})
	}
	sourcetest.Conform(t, kind("citations"), triples, kind("mag240m"), kind("products"))
}
