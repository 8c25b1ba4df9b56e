package planetoid

import (
	"testing"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/sourcetest"
)

func TestConform(t *testing.T) {
	input := func(f files) func() (ingest.Source, error) {
		dir := f.write(t)
		return func() (ingest.Source, error) { return Open(dir, 0) }
	}
	many := make([]int, ingest.ChunkRows+9)
	for i := range many {
		many[i] = i % 5
	}
	wide := seven().with("graph", pickled(dict(number(0), list(many...), number(1), list(0), number(3), list(3, 6), number(6), list(3))))
	sourcetest.Conform(t, input(wide), input(seven()))
}
