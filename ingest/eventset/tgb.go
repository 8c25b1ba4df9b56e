package eventset

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/edgelist"
	"github.com/gnnstore/gnnstore/ingest/lines"
	"github.com/gnnstore/gnnstore/ingest/pickle"
	"github.com/gnnstore/gnnstore/store"
)

// TGB is a data set of link prediction of the Temporal Graph Benchmark: a table of events, and
// beside it the negatives that events to validate and to test on are ranked among.
//
// Of a table in JODIE's layout (tgbl-wiki and its kin) users and items are of two types, and items
// count on from the users in the files of negatives. Others have time, source and destination
// first; their nodes are of one type, called by texts, and negatives number them as they come in
// the table, a row's source before its destination. In tkgl-* and thgl-* the fourth column is the
// type of an event; each type is a column of features. Types of nodes, in NAME_nodetype.csv, are
// columns of features of nodes.
type TGB struct {
	*edgelist.Source
	table     string
	negatives []string   // the files, or none
	looked    string     // for them
	typed     bool       // events have types, each a column of features
	types     *nodeTypes // nil without
	complete  bool       // each node must have a type
	skipped   []string   // files beside the table that are not read, and why
	memory    int64
	numbers   map[xxh3.Uint128]uint32 // of texts; nil of JODIE's layout
	seed      uint64                  // of their hashes, which nobody knows beforehand
	users     int64                   // of JODIE's layout
	items     int64
	schema    *ingest.Schema
}

// nodeBytes is the memory of a text's number, while its map grows.
const nodeBytes = 100

// OpenTGB opens the folder of a data set, or its table. columns are the columns of the table that
// are features of events, as edgelist.Options has them; nil means JODIE's, or none.
func OpenTGB(path string, columns []string, o Options) (*TGB, error) {
	table, err := findTGB(path)
	if err != nil {
		return nil, err
	}
	t := &TGB{table: table, memory: o.Memory, seed: rand.Uint64()}
	dir, name, version := filepath.Dir(table), "", ""
	name, version, _ = strings.Cut(strings.TrimSuffix(filepath.Base(table), ".csv"), "_edgelist")
	var missing []string
	for _, part := range []string{"val", "test"} {
		file := filepath.Join(dir, name+"_"+part+"_ns"+version+".pkl")
		if exists(file) {
			t.negatives = append(t.negatives, file)
		} else {
			missing = append(missing, file)
		}
	}
	if len(missing) == 1 {
		return nil, fmt.Errorf("%s: it is not there, and %s is; both come with the data set, so fetch it again, or take both away", missing[0], filepath.Base(t.negatives[0]))
	}
	t.looked = strings.Join(missing, " and ")
	if typed := strings.HasPrefix(name, "tkgl") || strings.HasPrefix(name, "thgl"); typed {
		t.typed = true
		if len(t.negatives) > 0 {
			t.skipped = append(t.skipped, fmt.Sprintf("%s: the negatives of typed events", strings.Join(t.negatives, " and ")))
			t.negatives = nil
		}
	}
	text, err := lines.ParseEncoding(o.Encoding)
	if err != nil {
		return nil, err
	}
	header, err := firstLine(table, text)
	if err != nil {
		return nil, err
	}
	list := edgelist.Options{Events: true, EdgeFeatures: columns, Encoding: o.Encoding}
	types := o.NodeTypes
	if beside := filepath.Join(dir, name+"_nodetype"+version+".csv"); types == "" && exists(beside) {
		types = beside
	}
	switch {
	case types == "" || types == NoNodeTypes:
	case !jodie(header):
		t.types = &nodeTypes{path: types, text: text}
	case o.NodeTypes != "":
		return nil, fmt.Errorf("{node_types} %s: the users and items of %s are two types already; leave it out",
			types, table)
	default:
		t.skipped = append(t.skipped, types+": types of nodes, since users and items are two types already")
	}
	if t.complete = o.Missing != "zeros"; o.Missing != "" && t.types == nil {
		return nil, errors.New("{missing_features}: it goes with the types of nodes, NAME_nodetype.csv or {node_types}, and " +
			"there are none")
	}
	if jodie(header) {
		list.Header, list.Src, list.Dst, list.Time, list.EventLabel, list.Bipartite, list.IDType = "short", "1", "2", "3", "4", true, "int"
		if columns == nil && !o.NoRows {
			list.EdgeFeatures = []string{"5-"}
		}
	} else {
		if src, dst, named := edgelist.Ends(strings.SplitN(header, ",", lines.MaxCells)); named && (src != 1 || dst != 2) {
			return nil, fmt.Errorf("%s: its columns are %s, and TGB's begin with time, source and destination; for another table choose format events", table, header)
		}
		t.numbers = map[xxh3.Uint128]uint32{}
		list.Header, list.Time, list.Src, list.Dst, list.IDType = "yes", "1", "2", "3", "text"
		if cells := strings.Split(header, ","); t.typed && len(cells) > 3 && columns == nil && !o.NoRows {
			list.Types = strings.TrimSpace(cells[3])
		}
	}
	if t.Source, err = edgelist.Open(table, list); err != nil {
		return nil, err
	}
	return t, nil
}

// IsTyped reports whether path leads to a table of TGB's typed events, tkgl-* or thgl-*, by its
// name.
func IsTyped(path string) bool {
	table, err := findTGB(path)
	if err != nil {
		return false
	}
	base := filepath.Base(table)
	return strings.HasPrefix(base, "tkgl-") || strings.HasPrefix(base, "thgl-")
}

// findTGB is the table that a path leads to.
func findTGB(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if info.IsDir() {
		found, err := filepath.Glob(filepath.Join(escape(path), "*_edgelist*.csv"))
		if err != nil {
			return "", err
		}
		if len(found) != 1 {
			return "", fmt.Errorf("%s: %d files *_edgelist*.csv in it; name the one to read", path, len(found))
		}
		path = found[0]
	}
	base := filepath.Base(path)
	switch {
	case !strings.HasSuffix(base, ".csv") || !strings.Contains(base, "_edgelist"):
		return "", fmt.Errorf("%s: not NAME_edgelist.csv, as TGB's data sets have it; for another table choose format events", path)
	case strings.HasPrefix(base, "tgbn"):
		return "", fmt.Errorf("%s: it is of shares to foretell of nodes, which are not learnt; tgbl-*, tkgl-* and thgl-* are read", path)
	}
	return path, nil
}

// firstLine returns the header of a table.
func firstLine(path string, of lines.Encoding) (string, error) {
	in, err := lines.OpenText(path, of)
	if err != nil {
		return "", err
	}
	defer in.Close()
	line, err := in.Next()
	if err != nil && err != io.EOF {
		return "", err
	}
	return string(bytes.TrimSpace(line)), nil
}

// jodie reports whether a header has JODIE's layout.
func jodie(header string) bool {
	cells := strings.SplitN(strings.ToLower(header), ",", 5)
	return len(cells) > 3 && strings.TrimSpace(cells[0]) == "user_id" && strings.TrimSpace(cells[1]) == "item_id"
}

// Extras implements [ingest.Source].
func (t *TGB) Extras() ingest.Extras {
	e := t.Source.Extras()
	e.Remarks, e.Negatives, e.Describe = t.Remarks, t.Negatives, t.Describe
	e.MissingRows = t.MissingRows
	return e
}

// Schema returns the table's schema, with all nodes known by their numbers.
func (t *TGB) Schema(ctx context.Context) (*ingest.Schema, error) {
	if t.schema != nil {
		return t.schema, nil
	}
	schema, err := t.Source.Schema(ctx)
	if err != nil {
		return nil, err
	}
	s, events := *schema, int64(0)
	s.Skipped = append(slices.Clone(s.Skipped), t.skipped...)
	if t.numbers == nil {
		t.users, t.items = 0, 0
		err = t.Source.Edges(ctx, 0, func(c ingest.EdgeChunk) error {
			events += int64(c.Len())
			for i, u := range c.Src {
				t.users, t.items = max(t.users, u+1), max(t.items, c.Dst[i]+1)
			}
			return nil
		})
		s.NodeTypes = []ingest.NodeType{{Name: "user", Count: t.users}, {Name: "item", Count: t.items}}
	} else {
		clear(t.numbers)
		err = t.eachText(ctx, func([]byte) error { return nil }, func(n int) { events += int64(n) })
		s.NodeTypes = []ingest.NodeType{{Name: "node", Count: int64(len(t.numbers)), IDs: ingest.TextIDs}}
	}
	if err != nil {
		return nil, err
	}
	if t.types != nil {
		if err := t.readTypes(ctx, &s); err != nil {
			return nil, err
		}
	}
	stream := *s.Relations[0].Stream
	stream.Negatives = len(t.negatives) > 0
	s.Relations = []ingest.Relation{s.Relations[0]}
	s.Relations[0].Stream, s.Relations[0].Edges = &stream, events
	for _, file := range t.negatives {
		lists, nodes := t.about(file)
		stream.About.Lists, stream.About.Negatives = stream.About.Lists+lists, stream.About.Negatives+nodes
		more, err := ingest.Files(file)
		if err != nil {
			return nil, err
		}
		if s.Identity != "" {
			s.Identity += more
		}
	}
	t.schema = &s
	return &s, nil
}

// readTypes reads the types of nodes, and adds them to the schema as features.
func (t *TGB) readTypes(ctx context.Context, s *ingest.Schema) error {
	number := func(text []byte) (uint32, bool) {
		n, known := t.numbers[xxh3.Hash128Seed(text, t.seed)]
		return n, known
	}
	if err := t.types.read(ctx, int64(len(t.numbers)), number); err != nil {
		return err
	}
	if t.complete && t.types.missing > 0 {
		return t.refuseMissing(ctx)
	}
	more, err := ingest.Files(t.types.path)
	if err != nil {
		return err
	}
	if s.Identity != "" {
		s.Identity += more
	}
	s.Tables = append(slices.Clone(s.Tables), ingest.Table{Name: "feat", NodeType: "node", Dim: t.types.names.Len()})
	s.Skipped = append(s.Skipped, t.types.notes()...)
	return nil
}

// refuseMissing returns the error that names the first node without a type.
func (t *TGB) refuseMissing(ctx context.Context) error {
	want, at, name := t.types.firstMissing(), uint32(0), ""
	err := t.eachText(ctx, func(text []byte) error {
		if at == want {
			name = lines.Clip(text)
		}
		at++
		return nil
	}, func(int) {})
	if err != nil {
		return err
	}
	return fmt.Errorf("%s: %d of the %d nodes of events have no type, %q is the first; add them, or say {missing_features} "+
		"zeros, or {node_types} none", t.types.path, t.types.missing, len(t.types.of), name)
}

// typesTable reports whether a table has the types of nodes, which is the last one.
func (t *TGB) typesTable(table int) bool {
	return t.types != nil && t.schema != nil && table == len(t.schema.Tables)-1
}

// Rows streams the features of events, or the types of nodes.
func (t *TGB) Rows(ctx context.Context, table int, emit func(ingest.RowChunk) error) error {
	if t.typesTable(table) {
		return t.types.rows(ctx, emit)
	}
	return t.Source.Rows(ctx, table, emit)
}

// MissingRows returns the number of nodes without a type.
func (t *TGB) MissingRows(table int) int64 {
	if t.typesTable(table) {
		return t.types.missing
	}
	return t.Source.MissingRows(table)
}

// Describe names the columns of the tables.
func (t *TGB) Describe() ingest.Description {
	d := t.Source.Describe()
	if t.types != nil && t.schema != nil {
		tables := make([][]store.Encoding, len(t.schema.Tables))
		copy(tables, d.Tables)
		tables[len(tables)-1] = t.types.columns()
		d.Tables = tables
	}
	return d
}

// eachText visits every text that was not there before, in the order of their numbers, which it
// finds. read is told of events.
func (t *TGB) eachText(ctx context.Context, visit func(text []byte) error, read func(events int)) error {
	next := uint32(0)
	take := func(text []byte) error {
		h := xxh3.Hash128Seed(text, t.seed)
		number, there := t.numbers[h]
		switch {
		case there && number != next: // or less, since texts come by their numbers
			return nil
		case !there:
			if t.memory > 0 && nodeBytes*int64(len(t.numbers)) > t.memory/4 {
				return fmt.Errorf("the table names more than %d nodes, whose numbers take a quarter of {memory}; raise {memory}", len(t.numbers))
			}
			t.numbers[h] = next
		}
		next++
		return visit(text)
	}
	return t.Source.Edges(ctx, 0, func(c ingest.EdgeChunk) error {
		read(c.Len())
		for i := range c.Len() {
			if err := take(c.SrcTexts.At(i)); err != nil {
				return err
			}
			if err := take(c.DstTexts.At(i)); err != nil {
				return err
			}
		}
		return nil
	})
}

// NodeIDs streams the texts that nodes are called by.
func (t *TGB) NodeIDs(ctx context.Context, nodeType int, emit func(ingest.IDChunk) error) error {
	if t.numbers == nil {
		return t.Source.NodeIDs(ctx, nodeType, emit)
	}
	out := ingest.Chunks(ctx, emit)
	out.Chunk.File = t.table
	return out.End(t.eachText(ctx, func(text []byte) error {
		out.Chunk.Texts.Append(text)
		return out.Added()
	}, func(int) {}))
}

// aboutItems is the number of items by which a file of negatives is estimated, and keyBytes the
// least that a key takes in it.
const (
	aboutItems = 64
	keyBytes   = 20
)

// about estimates the lists in a file of negatives, and the nodes in them, by its first lists and
// its size. It leaves errors in the file to the reading of it.
func (t *TGB) about(file string) (lists, nodes int64) {
	info, err := os.Stat(file)
	if err != nil {
		return 0, 0
	}
	var items, many, bytes int64
	enough := errors.New("enough")
	_ = (&pickle.Dialect{Memory: t.memory}).EachItem(file, func(_, value any) error {
		list, err := integers(nil, value)
		if err != nil {
			return err
		}
		items, many, bytes = items+1, many+int64(len(list)), bytes+keyBytes
		if a, ok := value.(*pickle.Array); ok {
			bytes += a.Bytes()
		} else {
			for _, v := range list { // as Python writes integers: of one, two or four bytes
				switch {
				case v < 1<<8:
					bytes += 2
				case v < 1<<16:
					bytes += 3
				default:
					bytes += 5
				}
			}
		}
		if items == aboutItems {
			return enough
		}
		return nil
	})
	if items == 0 {
		return 0, 0
	}
	files := float64(info.Size()) / float64(bytes)
	return int64(files * float64(items)), int64(files * float64(many))
}

// Negatives streams the lists of both files.
func (t *TGB) Negatives(ctx context.Context, _ int, emit func(ingest.NegativeChunk) error) error {
	if _, err := t.Schema(ctx); err != nil {
		return err
	}
	out := ingest.Chunks(ctx, emit)
	for _, file := range t.negatives {
		if err := out.In(file); err != nil {
			return err
		}
		f, size, err := store.OpenSized(file)
		if err != nil {
			return err
		}
		err = t.eachList(&out.Chunk, file, f, size, out.Added)
		f.Close()
		if err != nil {
			return err
		}
	}
	return out.Flush()
}

// eachList adds the lists of a file to a chunk, and calls added after each.
func (t *TGB) eachList(c *ingest.NegativeChunk, file string, r io.Reader, size int64, added func() error) error {
	item := 0
	return (&pickle.Dialect{Memory: t.memory}).EachItemOf(file, r, size, func(key, value any) error {
		if err := t.take(c, key, value); err != nil {
			return fmt.Errorf("%s: item %d (counting from 0): %w", file, item, err)
		}
		item++
		return added()
	})
}

// take adds an item of a file to a chunk.
func (t *TGB) take(c *ingest.NegativeChunk, key, value any) error {
	of, ok := key.(pickle.Tuple)
	if !ok || len(of) != 3 {
		what := pickle.Kind(key)
		if ok {
			what = fmt.Sprintf("a tuple of %d", len(of))
		}
		return fmt.Errorf("its key is %s instead of a tuple of source, destination and time; negatives of typed events are not read", what)
	}
	var ends [2]int64
	for i := range ends {
		if ends[i], ok = whole(of[i]); !ok {
			return fmt.Errorf("an end of its event is %s instead of an integer", pickle.Kind(of[i]))
		}
	}
	at, ok := of[2].(float64)
	if n, isInt := of[2].(int64); isInt {
		at, ok = float64(n), lines.Exact(strconv.AppendInt(nil, n, 10), float64(n))
	}
	if !ok || at-at != 0 {
		return fmt.Errorf("the time of its event is %s instead of a finite number", pickle.Kind(of[2]))
	}
	nodes, err := integers(c.Nodes, value)
	if err != nil {
		return err
	}
	for i, id := range nodes[len(c.Nodes):] {
		nodes[len(c.Nodes)+i] = id - t.users
	}
	c.Src, c.Dst, c.Times = append(c.Src, ends[0]), append(c.Dst, ends[1]-t.users), append(c.Times, at)
	c.Nodes = nodes
	c.Ends = append(c.Ends, uint32(len(nodes)))
	return nil
}

// whole is a number that is an integer, though it may be a float.
func whole(v any) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case float64:
		return lines.Whole(v)
	}
	return 0, false
}

// integers appends the numbers of an array or of a list.
func integers(nodes []int64, value any) ([]int64, error) {
	first := len(nodes)
	switch v := value.(type) {
	case *pickle.Array:
		if len(v.Shape) != 1 || !v.Type.Number() {
			return nil, fmt.Errorf("its negatives are an array %s instead of one row of integers", v.String())
		}
		floats := make([]float64, v.Len())
		if _, err := v.Reader().ReadFloat64s(floats); err != nil {
			return nil, err
		}
		for _, x := range floats {
			id, ok := whole(x)
			if !ok {
				return nil, fmt.Errorf("negative %d (counting from 0) is %v instead of an integer", len(nodes)-first, x)
			}
			nodes = append(nodes, id)
		}
	case *pickle.List:
		for _, x := range v.Items {
			id, ok := whole(x)
			if !ok {
				return nil, fmt.Errorf("negative %d (counting from 0) is %s instead of an integer", len(nodes)-first, pickle.Kind(x))
			}
			nodes = append(nodes, id)
		}
	default:
		return nil, fmt.Errorf("its negatives are %s instead of an array of integers", pickle.Kind(value))
	}
	return nodes, nil
}

// Remarks adds a remark where there are no negatives.
func (t *TGB) Remarks() []string {
	remarks := t.Source.Remarks()
	if t.typed && len(t.Source.Describe().Tables) > 0 {
		remarks = append(remarks[:len(remarks):len(remarks)], "the type of an event is a column of its features for each type, 1 at events of that type")
	}
	if len(t.negatives) == 0 && !t.typed {
		remarks = append(remarks[:len(remarks):len(remarks)], "there are no negatives to rank events among: looked for "+t.looked)
	}
	return remarks
}
