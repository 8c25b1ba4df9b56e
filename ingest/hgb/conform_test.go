package hgb

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/sourcetest"
)

func TestConform(t *testing.T) {
	input := func(path string) func() (ingest.Source, error) {
		return func() (ingest.Source, error) { return Open(path, Options{}) }
	}
	const n, dim = 12_000, 50 // nodes of two types in turn; the first type has features
	features := strings.Repeat("1,", dim-1)
	var nodes, links, labels, tests strings.Builder
	for i := range n {
		fmt.Fprintf(&nodes, "%d\tn%d\t%d", i, i, i%2)
		if i%2 == 0 {
			fmt.Fprintf(&nodes, "\t%s%d", features, i)
		}
		nodes.WriteByte('\n')
		switch i % 8 {
		case 0, 2, 4:
			fmt.Fprintf(&labels, "%d\tn%d\t0\t%d\n", i, i, i/2%3)
		case 6:
			fmt.Fprintf(&tests, "%d\tn%d\t0\t1\n", i, i)
		}
	}
	for i := range ingest.ChunkRows + ingest.ChunkRows/2 {
		u := i * 7 % n
		if i%9 > 0 {
			u -= u % 2
		}
		fmt.Fprintf(&links, "%d\t%d\t%d\t%d\n", u, (6*u+u%2)%n, u%2, 1+i%3)
	}
	large := map[string]string{"node.dat": nodes.String(), "link.dat": links.String(), "label.dat": labels.String(), "label.dat.test": tests.String()}
	sourcetest.Conform(t, input(writeDir(t, large)), input(writeZip(t, packed(t, tiny(t)))))
}
