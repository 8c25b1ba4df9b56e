package arrays

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/store"
)

// Events name the arrays of a stream of events that the usual names do not find.
type Events struct {
	Src, Dst  string
	Time      string
	Label     string // array with the class of each event; NoLabel reads none
	Part      string // array with the part of each event: 0 to train, 1 to validate, 2 to test
	Features  string
	Bipartite bool // sources and destinations are users and items, numbered apart
	NoRows    bool // features of events are not read, since others are to be made
}

// NoLabel as Events.Label reads no labels.
const NoLabel = "none"

// temporalClass is PyTorch Geometric's class of streams.
const temporalClass = "torch_geometric.data.temporal.TemporalData"

const (
	timeFlag       = "{time}"
	eventLabelFlag = "{label}"
	partFlag       = "{part}"
	rowsFlag       = "{edge_features}"
)

// The usual names of the arrays of events, as PyTorch Geometric's TemporalData and TGB have them.
var (
	timeNames       = []string{"t", "time", "times", "timestamp", "timestamps", "ts", "edge_time"}
	eventLabelNames = append([]string{"edge_label", "state_label"}, ingest.LabelNames...)
	rowNames        = []string{"msg", "edge_attr", "edge_feat", "edge_feats", "edge_features", "features", "feat"}
	eventPartNames  = []string{"part", "ext_roll"}
)

// HasEvents reports whether OpenEvents reads a file of this name.
func HasEvents(path string) bool {
	return isTorch(path) || strings.EqualFold(filepath.Ext(path), ".npz")
}

// OpenEvents opens a stream in a .pt, .pth or .npz file: PyTorch Geometric's TemporalData, or
// arrays of sources, destinations and times. Of Options it takes the number of nodes and the
// memory.
func OpenEvents(path string, o Options, ev Events) (ingest.Source, error) {
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if info.IsDir() {
		return nil, fmt.Errorf("%s: a folder; name the file of events in it", path)
	}
	var b *bag
	var types []string
	var err error
	if isTorch(path) {
		b, types, err = torchBag(path, &o)
	} else {
		b, err = npzBag(path, &o)
	}
	if err != nil {
		return nil, err
	}
	if types != nil {
		b.close()
		return nil, fmt.Errorf("%s: a HeteroData, which is no stream of events; choose format pt", path)
	}
	return newStream(b, o, ev)
}

// newStream returns the stream of a bag. It owns the bag, and closes it on an error.
func newStream(b *bag, o Options, ev Events) (*Source, error) {
	s := &Source{o: o, bag: b, nodes: map[string]*nodeType{}, events: &stream{Events: ev}}
	if err := s.findStream(); err != nil {
		b.close()
		return nil, err
	}
	return s, nil
}

// stream has the arrays of a Source of events beside its edges.
type stream struct {
	Events
	time    *array
	label   *array           // nil without labels
	classes *ingest.Category // of labels, once learnt
	part    *array           // number of the part of each event, or nil
	masks   [3]*array        // one mask for each part, or nil
}

// findStream finds the arrays of a stream, and writes its schema.
func (s *Source) findStream() error {
	ev := s.events
	if err := s.unwanted(); err != nil {
		return err
	}
	if ev.Src != "" || ev.Dst != "" {
		if ev.Src == "" || ev.Dst == "" {
			return fmt.Errorf("%s: {src} and {dst} name one array each; name both", s.bag.path)
		}
		s.o.Edges = ev.Src + "," + ev.Dst
	}
	e, err := s.findEdges("")
	if err != nil {
		return err
	}
	if e.csr() || e.dense != nil || e.sized != "" {
		return fmt.Errorf("%s: a matrix, and events are a source and a destination each, in their order; {src} and {dst} name two arrays", e.name)
	}
	user, item := &nodeType{count: -1}, &nodeType{index: 1, count: -1}
	s.schema.NodeTypes = []ingest.NodeType{{Name: "node"}}
	r := ingest.Relation{Src: "node", Name: ingest.StreamName, Dst: "node", Edges: e.count, Stream: &ingest.Stream{Time: "time"}}
	if ev.Bipartite {
		r.Src, r.Dst = "user", "item"
		s.schema.NodeTypes = []ingest.NodeType{
			{Name: "user", IDs: ingest.IntIDs, Gathered: true}, {Name: "item", IDs: ingest.IntIDs, Gathered: true},
		}
		s.nodes["user"], s.nodes["item"] = user, item
	} else {
		s.nodes["node"] = user
		if err := s.declared("", user); err != nil {
			return err
		}
	}
	r.Columns = []ingest.EdgeColumn{{Name: "time", Elem: store.F64}}
	if ev.time, err = s.ofEvents(e, timeFlag, ev.Time, timeNames, false); err != nil {
		return err
	}
	if ev.time == nil {
		return fmt.Errorf("%s: no times of events in it%s; looked for %s; %s NAME in format events says another",
			s.bag.path, s.found(), strings.Join(timeNames, ", "), timeFlag)
	}
	if ev.Label != NoLabel {
		if ev.label, err = s.ofEvents(e, eventLabelFlag, ev.Label, eventLabelNames, true); err != nil {
			return err
		}
	}
	if ev.label != nil {
		r.Stream.Label = "label"
		r.Columns = append(r.Columns, ingest.EdgeColumn{Name: "label", Elem: store.I32})
	}
	if err := s.findParts(e, &r); err != nil {
		return err
	}
	rows, err := s.pick("", rowsFlag, ev.Features, rowNames)
	if err != nil {
		return err
	}
	switch {
	case rows == nil || ev.NoRows:
	case !rows.isTable():
		return fmt.Errorf("%s, and a row of 1 to %d numbers for each event is expected", rows.form(), int64(ingest.MaxColumns))
	case rows.Shape[0] != e.count:
		return fmt.Errorf("%s: %d rows, and %s has %d events; are they of one stream?", rows.name, rows.Shape[0], e.name, e.count)
	default:
		s.schema.Tables = append(s.schema.Tables, ingest.Table{Name: "feat", Relation: r.Key(), Dim: columns(rows)})
		s.tables = append(s.tables, rows)
	}
	s.schema.Relations, s.edges = []ingest.Relation{r}, []*edges{e}
	s.schema.Featureless = true
	return s.finish()
}

// unwanted refuses the options of graphs that a stream has no use for.
func (s *Source) unwanted() error {
	for _, n := range []struct{ flag, name string }{
		{weightsFlag, s.o.Weights}, {"{array_train}", s.o.Train}, {"{array_valid}", s.o.Valid}, {"{array_test}", s.o.Test}, {splitFlag, s.o.Split},
	} {
		if n.name != "" {
			return fmt.Errorf("%s: a stream of events, for which %s names nothing; leave it out, or choose format events, whose {part} names the parts of events", s.bag.path, n.flag)
		}
	}
	if s.events.Bipartite && s.o.Nodes > 0 {
		return errors.New("{bipartite}: sources and destinations are numbered apart; leave {node_count} out")
	}
	return nil
}

// ofEvents opens an array with a value for each event. It returns nil if there is none.
func (s *Source) ofEvents(e *edges, flag, given string, usual []string, text bool) (*array, error) {
	a, err := s.pick("", flag, given, usual)
	if err != nil || a == nil {
		return nil, err
	}
	if len(a.Shape) == 2 && a.Shape[1] == 1 {
		a = a.part(a.Select(1, 0))
	}
	if len(a.Shape) != 1 || !a.Type.Number() && !(text && a.isText()) {
		hint := "numbers in one dimension are expected"
		if text {
			hint = "a class for each event is expected; say {label} " + NoLabel + " in format events to read none"
		}
		return nil, fmt.Errorf("%s, and %s", a.form(), hint)
	}
	if a.Shape[0] != e.count {
		return nil, fmt.Errorf("%s: %s, and %s has %d events; are they of one stream?", a.name, plural(a.Shape[0], "value"), e.name, e.count)
	}
	return a, nil
}

// findParts finds the parts of events: a number each, or three masks.
func (s *Source) findParts(e *edges, r *ingest.Relation) error {
	ev := s.events
	var err error
	if ev.part, err = s.ofEvents(e, partFlag, ev.Part, eventPartNames, false); err != nil || ev.part != nil {
		r.Parted = ev.part != nil
		return err
	}
	found := 0
	for i, names := range ingest.PartNames {
		var masks []string // lists of ids are about nodes, not events
		for _, name := range names {
			if ingest.IsMaskName(name) {
				masks = append(masks, name)
			}
		}
		if ev.masks[i], err = s.ofEvents(e, partFlag, "", masks, false); err != nil {
			return err
		}
		if ev.masks[i] != nil {
			found++
		}
	}
	if found > 0 && found < len(ev.masks) {
		return fmt.Errorf("%s: masks of %d of the parts train, val and test of events; save all three, or none", s.bag.path, found)
	}
	r.Parted = found > 0
	return nil
}

// settleStream learns the classes of labels.
func (s *Source) settleStream(ctx context.Context) error {
	ev := s.events
	if ev.label == nil || ev.classes != nil {
		return nil
	}
	classes := ingest.NewCategory(ingest.MaxClasses)
	read := ev.readLabels(classes)
	for n, left := make([]uint64, min(ingest.ChunkRows, max(ev.label.Len(), 1))), ev.label.Len(); left > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		k := min(int64(len(n)), left)
		if err := read(n[:k], true); err != nil {
			return ev.label.fail(ctx, err)
		}
		left -= k
	}
	if err := classes.SettleLabel(); err != nil {
		return fmt.Errorf("%s: %w; %s NAME in format events says another array, and %s %s reads none", ev.label.name, err, eventLabelFlag, eventLabelFlag, NoLabel)
	}
	ev.classes = classes
	s.schema.Relations[0].Stream.ClassNames = classes.Names
	return nil
}

// readLabels returns a function that reads the next labels. It learns their classes, or writes
// classes as the bits of I32.
func (ev *stream) readLabels(classes *ingest.Category) func(bits []uint64, learn bool) error {
	r, row := ev.label.Reader(), int64(0)
	var numbers []float64
	var texts []string
	var buf []byte
	return func(bits []uint64, learn bool) error {
		isText := ev.label.isText()
		var err error
		if isText {
			texts = append(texts[:0], make([]string, len(bits))...)
			_, err = r.ReadStrings(texts)
		} else {
			numbers = append(numbers[:0], make([]float64, len(bits))...)
			_, err = r.ReadFloat64s(numbers)
		}
		if err != nil && err != io.EOF {
			return err
		}
		for i := range bits {
			var token ingest.Token
			there := true
			if isText {
				if token, there, err = ingest.LabelToken([]byte(texts[i]), nil); err != nil {
					return fmt.Errorf("row %d: %w", row+int64(i), err)
				}
			} else {
				switch v := numbers[i]; {
				case math.IsNaN(v) || v < 0 && v == math.Trunc(v):
					there = false
				case v != math.Trunc(v) || v > math.MaxInt32:
					return fmt.Errorf("row %d: %s is not the number of a class, and labels of events are classes; {label} %s in format events reads none", row+int64(i), number(v), NoLabel)
				default:
					token = ingest.IntToken(int64(v), buf)
				}
			}
			bits[i] = math.MaxUint32 // -1, missing
			switch {
			case !there:
			case learn:
				classes.Learn(token)
			default:
				class, err := classes.Of(token)
				if err != nil {
					return fmt.Errorf("row %d: %w", row+int64(i), err)
				}
				if class >= ingest.MaxClasses {
					return fmt.Errorf("row %d: label %d; labels of events are classes, numbers from 0 to %d: number them anew", row+int64(i), class, ingest.MaxClasses-1)
				}
				bits[i] = uint64(uint32(class))
			}
		}
		row += int64(len(bits))
		return nil
	}
}

// readTimes returns a function that reads the next times as the bits of F64.
func (ev *stream) readTimes() func(bits []uint64) error {
	r, row := ev.time.Reader(), int64(0)
	var floats []float64
	var whole []int64
	return func(bits []uint64) error {
		if ev.time.Type.Floating() {
			floats = append(floats[:0], make([]float64, len(bits))...)
			if _, err := r.ReadFloat64s(floats); err != nil {
				return err
			}
			for i, v := range floats {
				if v-v != 0 {
					return fmt.Errorf("row %d: %s is not a finite number, as times are", row+int64(i), number(v))
				}
				bits[i] = math.Float64bits(v)
			}
			row += int64(len(bits))
			return nil
		}
		whole = append(whole[:0], make([]int64, len(bits))...)
		if _, err := r.ReadInt64s(whole); err != nil {
			return err
		}
		for i, v := range whole {
			if v > 1<<53 || v < -1<<53 {
				return fmt.Errorf("row %d: %d has more digits than a time keeps, which is a float of 64 bits (integers up to 2⁵³), so that times that differ would be one; "+
					"subtract the first time from all, or save a coarser unit", row+int64(i), v)
			}
			bits[i] = math.Float64bits(float64(v))
		}
		row += int64(len(bits))
		return nil
	}
}

// readParts returns a function that reads the parts of the next events. With an error it returns
// the array at fault.
func (ev *stream) readParts() func(parts []ingest.Part) (*array, error) {
	row := int64(0)
	var in [3]*ids
	if ev.part != nil {
		in[0] = ev.part.ids(1)
	} else {
		for i, m := range ev.masks {
			in[i] = m.ids(1)
		}
	}
	var buf [3][]int64
	return func(parts []ingest.Part) (*array, error) {
		for i, r := range in {
			if r == nil {
				continue
			}
			buf[i] = append(buf[i][:0], make([]int64, len(parts))...)
			if _, err := r.read(buf[i]); err != nil {
				return r.a, err
			}
		}
		for k := range parts {
			if ev.part != nil {
				if v := buf[0][k]; v < 0 || v > 2 {
					return ev.part, fmt.Errorf("row %d: %d is no part (0 to train, 1 to validate and 2 to test are)", row+int64(k), v)
				}
				parts[k] = ingest.Part(buf[0][k])
				continue
			}
			if a, b, c := buf[0][k], buf[1][k], buf[2][k]; a+b+c != 1 || a < 0 || b < 0 || c < 0 {
				return ev.masks[0], fmt.Errorf("row %d: the event is in %d parts by the masks of train, val and test, and each is in one", row+int64(k), a+b+c)
			}
			for i := range buf {
				if buf[i][k] == 1 {
					parts[k] = ingest.Part(i)
				}
			}
		}
		row += int64(len(parts))
		return nil, nil
	}
}

// eachEvent streams the events in the order of the arrays.
func (s *Source) eachEvent(ctx context.Context, emit func(ingest.EdgeChunk) error) error {
	ev, e := s.events, s.edges[0]
	c, times := e.open(ctx), ev.readTimes()
	var labels func([]uint64, bool) error
	if ev.label != nil {
		labels = ev.readLabels(ev.classes)
	}
	var readParts func([]ingest.Part) (*array, error)
	if s.schema.Relations[0].Parted {
		readParts = ev.readParts()
	}
	n := min(ingest.ChunkRows, e.count)
	values, parts := [][]uint64{make([]uint64, n)}, []ingest.Part(nil)
	if labels != nil {
		values = append(values, make([]uint64, n))
	}
	place := ingest.Place{File: e.name}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		src, dst, err := c.next()
		if err != nil {
			return e.fail(ctx, err)
		}
		if len(src) == 0 {
			return nil
		}
		chunk := ingest.EdgeChunk{Place: place, Src: src, Dst: dst}
		for i := range values {
			chunk.Values = append(chunk.Values, values[i][:len(src)])
		}
		if err := times(chunk.Values[0]); err != nil {
			return ev.time.fail(ctx, err)
		}
		if labels != nil {
			if err := labels(chunk.Values[1], false); err != nil {
				return ev.label.fail(ctx, err)
			}
		}
		if readParts != nil {
			parts = append(parts[:0], make([]ingest.Part, len(src))...)
			if a, err := readParts(parts); err != nil {
				return a.fail(ctx, err)
			}
			chunk.Parts = parts
		}
		if err := emit(chunk); err != nil {
			return err
		}
		place.First += int64(len(src))
	}
}

// describe names the arrays of a stream.
func (ev *stream) describe() []string {
	names := []string{ev.time.key}
	if ev.label != nil {
		names = append(names, ev.label.key)
	}
	return names
}
