package export

import (
	"strconv"

	"github.com/parquet-go/parquet-go"

	"github.com/gnnstore/gnnstore/store"
)

// WritePairs writes scores of pairs of nodes to the file out, with the ids that users know them by, as WriteRows does: columns src and dst,
// integers or texts, and score, in csv or Parquet. o has the Format, Force and FS, and in Rows how many pairs there may be.
func WritePairs(
	out string, src, dst store.IDs, o RowOptions, fill func(add func(src, dst []store.NodeID, scores []float32) error) error,
) (*RowsReport, error) {
	o.Kind, o.Cols = scored, 1
	w := newRowWriter(out, src, o)
	w.partners = dst
	return w.write(out, func() error { return fill(w.addPairs) })
}

// pairHeader names the columns.
var pairHeader = []string{"src", "dst", "score"}

// beginPairSheet makes the columns of a table of pairs.
func (w *rowWriter) beginPairSheet(f *file) {
	s := newSheet()
	for i, ids := range []store.IDs{w.ids, w.partners} {
		node := parquet.Node(int64Node)
		if ids.HasNames() {
			node = parquet.String()
		}
		s.column(pairHeader[i], "", node, 16)
	}
	s.column(pairHeader[2], "", parquet.Leaf(parquet.FloatType), 4)
	s.begin(f, "pairs")
	for _, name := range pairHeader {
		w.leaves = append(w.leaves, s.index[name])
	}
	w.sheet = s
}

// addPairs writes some pairs.
func (w *rowWriter) addPairs(src, dst []store.NodeID, scores []float32) error {
	for i, score := range scores {
		var number [2]int64
		var name [2]string
		for end, v := range []store.NodeID{src[i], dst[i]} {
			var err error
			if number[end], name[end], err = idOf([]store.IDs{w.ids, w.partners}[end], v); err != nil {
				return err
			}
		}
		if err := w.addPair(number, name, score); err != nil {
			return err
		}
	}
	w.written += int64(len(scores))
	return nil
}

// addPair writes a pair by its ids: their texts where they have some, else their numbers.
func (w *rowWriter) addPair(number [2]int64, name [2]string, score float32) error {
	texts := [2]bool{w.ids.HasNames(), w.partners.HasNames()}
	if w.csv != nil {
		for end := range texts {
			if !texts[end] {
				name[end] = strconv.FormatInt(number[end], 10)
			}
		}
		w.record = append(w.record[:0], name[0], name[1], strconv.FormatFloat(float64(score), 'g', -1, 32))
		return w.csv.Write(w.record)
	}
	for end := range texts {
		v := parquet.Int64Value(number[end])
		if texts[end] {
			v = parquet.ByteArrayValue([]byte(name[end]))
		}
		w.sheet.set(w.leaves[end], v)
	}
	w.sheet.set(w.leaves[2], parquet.FloatValue(score))
	return w.sheet.end()
}
