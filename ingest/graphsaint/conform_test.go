package graphsaint

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/sourcetest"
)

func TestConform(t *testing.T) {
	input := func(f files) func() (ingest.Source, error) {
		dir := f.write(t)
		return func() (ingest.Source, error) { return Open(dir) }
	}
	const n, dim = ingest.ChunkRows + 9, 5 // nodes and edges
	bounds, ends, present := make([]int32, n+1), make([]int32, n), make([]bool, n)
	var single, multi []string
	var parts [3][]string
	for i := range n {
		bounds[i+1], ends[i], present[i] = int32(i+1), int32(i*7%n), i%9 > 0
		single = append(single, fmt.Sprintf(`"%d": %d`, i, i%4-1))
		multi = append(multi, fmt.Sprintf(`"%d": [%d,1,%d,0,0]`, i, i%2, i/2%2))
		parts[i%3] = append(parts[i%3], fmt.Sprint(n-1-i))
	}
	class := func(entries []string) string { return "{" + strings.Join(entries, ", ") + "}" }
	sourcetest.Conform(t, input(files{
		"adj_full.npz":   adjacency(n, bounds, ends, present),
		"feats.npy":      npyFile("<f4", true, []int64{n, dim}, make([]float32, dim*n)),
		"class_map.json": class(single),
		"role.json":      fmt.Sprintf(`{"tr": [%s], "te": [%s], "va": [%s]}`, strings.Join(parts[0], ","), strings.Join(parts[1], ","), strings.Join(parts[2], ",")),
	}), input(files{"adj_full.npz": adjacency(n, make([]int32, n+1), nil, nil), "class_map.json": class(multi)}), input(four()))
}
