package export

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/gnnstore/gnnstore/store"
)

// StreamReport counts the events written of a stream, and has the arguments that read them again.
type StreamReport struct {
	Name   string `json:"name"`
	Events int64  `json:"events"`
	File   string `json:"file"`
	// Ingest are the arguments of gnnstore ingest events behind the names of source and dataset
	// that make a stream of it again.
	Ingest []string `json:"ingest"`
}

type manifestStream struct {
	StreamReport
	Src    string              `json:"src"`
	Dst    string              `json:"dst"`
	Tables map[string][]string `json:"tables,omitempty"` // name to columns
}

// Columns of a table of events, beside columns of features.
const (
	srcColumn, dstColumn = "src", "dst"
	timeColumn           = "time"
	labelColumn          = "label"
	partColumn           = "part"
)

const (
	eventBytes = 5 * 8 // of a row, without its features
	eventBlock = 16 << 10
)

// settle chooses the format by what the dataset has, where Options do not, and refuses what a
// stream is not written as.
func (e *exporter) settle() error {
	streams := len(e.m.Streams) > 0 && len(e.m.Relations) == 0
	switch {
	case e.Format == "" && streams:
		e.Format = Parquet
	case e.Format == "":
		e.Format = NPY
	case streams && e.Format != Parquet:
		return fmt.Errorf("{format} %s: %s has a stream of events, which is written as parquet, and read again by ingest events; leave {format} out", e.Format, e.ds.Path())
	}
	if streams && e.Sample > 0 {
		return fmt.Errorf("{sample}: it follows the edges of relations, and %s has a stream of events; leave it out", e.ds.Path())
	}
	e.report.Format = e.Format
	for _, s := range e.m.Streams {
		if e.Format != Parquet || e.Sample > 0 {
			e.skip("stream %s: it is written whole, and as parquet; {format} parquet without {sample} writes it", s.Name)
		}
	}
	return nil
}

// streamBytes returns about the most that the tables of events take.
func (e *exporter) streamBytes() (n int64) {
	if e.Format != Parquet || e.Sample > 0 {
		return 0
	}
	for _, s := range e.m.Streams {
		each := int64(eventBytes)
		for _, t := range e.m.Tables {
			if t.Stream == s.Name {
				each += 4 * t.Dim
			}
		}
		for _, end := range []string{s.Src, s.Dst} {
			if n := e.typeOf(end); n.ids.HasNames() && n.typ.Count > 0 {
				each += nameBytes(n.typ) / n.typ.Count
			}
		}
		n += s.Events * each
	}
	return n + n/16 // of pages' headers, and of levels
}

// nameBytes returns the size of the texts that nodes of a type are called by.
func nameBytes(t *store.NodeType) (n int64) {
	if t.Names != nil {
		for _, b := range t.Names.ByName {
			n += 2 * b.Bytes // which are packed
		}
	}
	return n
}

// parquetStream writes a row for each event of stream i, in the order of time: src and dst by the
// ids that users know, time, label, the part of the split, 0 to 2, and a column of its own for each
// column of features, as ingest events reads them.
func (e *exporter) parquetStream(i int) (to manifestStream, err error) {
	events := e.ds.Events(i)
	s := events.Stream
	to = manifestStream{StreamReport{Name: s.Name, Events: s.Events, File: "events-" + s.Name + ".parquet"}, s.Src, s.Dst, map[string][]string{}}
	src, dst := e.typeOf(s.Src), e.typeOf(s.Dst)
	sh := newSheet()
	sh.column(srcColumn, "", idNode(src), 8)
	sh.column(dstColumn, "", idNode(dst), 8)
	sh.column(timeColumn, "", parquet.Leaf(parquet.DoubleType), 8)
	sh.column(partColumn, "", parquet.Int(8), 4)
	if s.Labels != nil {
		node := classNode
		if s.ClassNames != nil {
			node = partNode
		}
		sh.column(labelColumn, "", node, 4)
	}
	type table struct {
		rows
		leaves []int
	}
	var tables []*table
	for k, t := range e.m.Tables {
		if t.Stream != s.Name {
			continue
		}
		tables = append(tables, &table{rows: rows{features: e.ds.Features(k)}})
		names, err := e.columnNames(&e.m.Tables[k])
		if err != nil {
			return to, err
		}
		for _, name := range names {
			to.Tables[t.Name] = append(to.Tables[t.Name], sh.column(name, "table", parquet.Leaf(parquet.FloatType), 4))
		}
	}
	to.Ingest = e.ingestArgs(events, sh, to.Tables)
	err = e.writeFile(to.File, func(f *file) error {
		sh.begin(f, s.Name)
		for _, t := range tables {
			for _, name := range to.Tables[t.features.Table.Name] {
				t.leaves = append(t.leaves, sh.index[name])
			}
		}
		from, into, at, part, label := sh.index[srcColumn], sh.index[dstColumn], sh.index[timeColumn], sh.index[partColumn], sh.index[labelColumn]
		block := int64(eventBlock)
		for _, t := range tables {
			block = min(block, int64(max(blockBytes/len(tables)/t.features.RowBytes(), 1)))
		}
		for lo := int64(0); lo < s.Events; lo += block {
			if err := e.progress("write events", lo, s.Events, "events"); err != nil {
				return err
			}
			hi := min(lo+block, s.Events)
			us, vs := events.Ends(lo, hi)
			times, labels := events.Times(lo, hi), events.Labels(lo, hi)
			bytes := make([][]byte, len(tables))
			for k, t := range tables {
				bytes[k] = t.gather(int(hi-lo), func(i int) uint64 { return uint64(lo) + uint64(i) })
			}
			for k, time := range times {
				if err := cmp.Or(sh.setID(from, src, us[k]), sh.setID(into, dst, vs[k])); err != nil {
					return err
				}
				sh.set(at, parquet.DoubleValue(time))
				sh.set(part, parquet.Int32Value(partOf(&s.Split, lo+int64(k))))
				if labels != nil {
					sh.set(label, classValue(s, labels[k]))
				}
				for j, t := range tables {
					size := t.features.RowBytes()
					sh.setFloats(t.leaves, bytes[j][k*size:(k+1)*size], t.features.Elem())
				}
				if err := sh.end(); err != nil {
					return err
				}
			}
		}
		return sh.w.Close()
	})
	e.skipOfStream(events)
	return to, err
}

// columnNames returns the names for a table's columns. It takes the source's names if they are
// different and ingest can be told them. Else it numbers the columns with digits of one width, so
// that sorting by name keeps their order.
func (e *exporter) columnNames(t *store.Table) (names []string, err error) {
	encodings, err := e.ds.Encodings()
	if err != nil {
		return nil, err
	}
	if encodings != nil {
		if of := encodings.Of(t); of != nil {
			for _, c := range of.Columns {
				names = append(names, c.Name)
			}
		}
	}
	known := map[string]bool{"": true}
	for _, name := range names {
		if known[name] || strings.ContainsAny(name, ",\"\r\n") {
			names = nil
			break
		}
		known[name] = true
	}
	if int64(len(names)) == t.Dim {
		return names, nil
	}
	names = nil
	digits := len(strconv.FormatInt(t.Dim-1, 10))
	for c := range t.Dim {
		names = append(names, fmt.Sprintf("%s_%0*d", t.Name, digits, c))
	}
	return names, nil
}

// idNode returns the Parquet type of a column of node ids in a table of events.
func idNode(n *numbering) parquet.Node {
	if n.ids.HasNames() {
		return parquet.String()
	}
	return int64Node
}

// setID gives a leaf the id of a node.
func (s *sheet) setID(leaf int, n *numbering, v store.NodeID) error {
	if !n.ids.HasNames() {
		s.set(leaf, parquet.Int64Value(n.ids.Original(v)))
		return nil
	}
	name, err := n.ids.Name(v)
	if err == nil {
		s.set(leaf, parquet.ByteArrayValue([]byte(name)))
	}
	return err
}

// setFloats gives each of some leaves its column of a row.
func (s *sheet) setFloats(leaves []int, row []byte, elem store.Elem) {
	for c, leaf := range leaves {
		s.set(leaf, parquet.FloatValue(floatAt(row, c, elem)))
	}
}

// partOf is the part of an event.
func partOf(s *store.StreamSplit, event int64) int32 {
	switch {
	case event < s.Train:
		return 0
	case event < s.Train+s.Valid:
		return 1
	}
	return 2
}

// classValue is a label of an event, by its name where classes have some.
func classValue(s *store.Stream, class int32) parquet.Value {
	switch {
	case class < 0 || s.ClassNames != nil && int(class) >= len(s.ClassNames):
		return parquet.Value{}
	case s.ClassNames != nil:
		return parquet.ByteArrayValue([]byte(s.ClassNames[class]))
	}
	return parquet.Int32Value(class)
}

// ingestArgs are the options with which ingest makes the stream again of a sheet.
func (e *exporter) ingestArgs(events *store.Events, sh *sheet, tables map[string][]string) []string {
	s := events.Stream
	args := []string{"--header", "yes", "--src", srcColumn, "--dst", dstColumn, "--time", timeColumn}
	src := e.typeOf(s.Src)
	ids := "int"
	if src.ids.HasNames() {
		ids = "text"
	}
	args = append(args, "--id-type", ids)
	switch {
	case s.Src != s.Dst:
		args = append(args, "--bipartite")
	case !src.ids.HasNames() && src.dense && silent(events, 0, events.Sources) > 0:
		args = append(args, "--one-id-space", "--node-count", strconv.FormatInt(src.typ.Count, 10))
	default:
		args = append(args, "--one-id-space")
	}
	if s.Labels != nil {
		args = append(args, "--label", labelColumn)
	}
	if strings.HasPrefix(s.Split.Name, "time:") {
		args = append(args, "--split", s.Split.Name)
	} else {
		args = append(args, "--part", partColumn)
	}
	args = append(args, "--order", e.m.Order, "--time-scale", strconv.FormatFloat(s.TimeScale, 'g', -1, 64))
	for _, t := range e.m.Tables {
		if t.Stream != s.Name {
			continue
		}
		args = append(args, "--edge-features", placesOf(tables[t.Name], sh))
		if t.Elem == store.F32 {
			args = append(args, "--dtype", "f32")
		}
		break // of several the first, which ingest makes
	}
	return args
}

// placesOf returns the value of --edge-features for columns of the file, which sorts them by name:
// a range of places if they are consecutive and in order, else their names.
func placesOf(columns []string, sh *sheet) string {
	inFile := slices.Sorted(maps.Keys(sh.columns))
	first := slices.Index(inFile, columns[0])
	if end := first + len(columns); end <= len(inFile) && slices.Equal(inFile[first:end], columns) {
		return fmt.Sprintf("%d-%d", first+1, end)
	}
	return strings.Join(columns, ",")
}

// silent counts the nodes at places lo to hi that have no event.
func silent(events *store.Events, lo, hi int64) (n int64) {
	for place := lo; place < hi; place++ {
		if events.Degree(place) == 0 {
			n++
		}
	}
	return n
}

// skipOfStream reports the parts of a stream that a table of events does not have.
func (e *exporter) skipOfStream(events *store.Events) {
	s := events.Stream
	if s.Negatives != nil {
		e.skip("stream %s: its negatives are not written", s.Name)
	}
	if s.NodeLabels != nil {
		e.skip("stream %s: labels that nodes have at times of their own are not written", s.Name)
	}
	for _, end := range []struct {
		name   string
		lo, hi int64
	}{{s.Src, 0, events.Sources}, {s.Dst, events.Sources, events.Places()}} {
		n := e.typeOf(end.name)
		switch lost := silent(events, end.lo, end.hi); {
		case lost == 0:
		case s.Src == s.Dst && n.dense && !n.ids.HasNames(): // they are counted
		default:
			e.skip("stream %s: %d nodes of type %s have no event, and are in nodes-%s.parquet alone", s.Name, lost, end.name, end.name)
		}
		if slices.ContainsFunc(e.m.Tables, func(t store.Table) bool { return t.NodeType == end.name }) && (end.lo == 0 || s.Src != s.Dst) {
			e.skip("stream %s: features of nodes are in nodes-%s.parquet, which ingest events does not read", s.Name, end.name)
		}
	}
}
