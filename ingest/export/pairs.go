package export

import "github.com/gnnstore/gnnstore/store"

// Pairs identify rows of pairs of nodes: the ids of both ends, the name of each pair's relation
// if there are several, and its time if pairs have times.
type Pairs struct {
	Src, Dst  store.IDs
	Relations []string
	Times     []float64
}

// WritePairs writes numbers of pairs of nodes, such as scores or what is predicted of edges, to the
// file out, as WriteRows does: with columns src and dst, integers or texts, and relation where
// there are several, or time. In npy there is a file for each of these, as there is one for ids.
// fill adds pairs with the relation of each by its place among the names, which is ignored where
// there are none.
func WritePairs(
	out string, p Pairs, o RowOptions, fill func(add func(src, dst []store.NodeID, of []uint32, rows []float32) error) error,
) (*RowsReport, error) {
	keys := []key{{name: "src", file: "src", ids: p.Src}, {name: "dst", file: "dst", ids: p.Dst}}
	if p.Relations != nil {
		keys = append(keys, key{name: "relation", file: "relation", names: p.Relations})
	}
	if p.Times != nil {
		keys = append(keys, key{name: "time", file: "time", times: p.Times})
	}
	w := newRowWriter(out, o, keys...)
	return w.write(out, func() error {
		return fill(func(src, dst []store.NodeID, of []uint32, rows []float32) error {
			for i := range src {
				ends := [3]uint32{src[i], dst[i]}
				switch {
				case p.Relations != nil:
					ends[2] = of[i]
				case p.Times != nil:
					ends[2] = uint32(w.written)
				}
				if err := w.addRow(rows[i*w.Cols:(i+1)*w.Cols], ends[:len(keys)]...); err != nil {
					return err
				}
			}
			return nil
		})
	})
}
