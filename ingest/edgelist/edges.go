package edgelist

import (
	"context"
	"fmt"
	"io"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/lines"
)

// findFiles returns the files of an edge list: the one, or the files of a folder in natural order.
func findFiles(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, refuseName(path)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		name := e.Name()
		if name[0] == '.' || name[0] == '_' || e.IsDir() { // _SUCCESS and its like
			continue
		}
		if info, err := os.Stat(filepath.Join(path, name)); err != nil {
			return nil, err
		} else if info.Size() == 0 && info.Mode().IsRegular() { // a part that nothing fell to
			continue
		}
		files = append(files, filepath.Join(path, name))
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: nothing in it; name an edge list, or a folder of its parts", path)
	}
	slices.SortFunc(files, lines.Natural)
	return files, nil
}

// refuseName refuses a file that looks like a list of edges, but is none by its name.
func refuseName(path string) error {
	base := strings.ToLower(filepath.Base(path))
	for _, packed := range []string{".gz", ".zst"} {
		base = strings.TrimSuffix(base, packed)
	}
	say := ""
	switch filepath.Ext(base) {
	case ".adjlist":
		say = lines.Adjacency(path)
	case ".metis":
		say = lines.METIS(path)
	case ".graph":
		if text, err := firstText(path); err == nil && isMETIS(text) {
			say = lines.METIS(path)
		}
	case ".mtx":
		say = "a matrix in the Matrix Market format by its name; format mtx reads it: gnnstore ingest mtx " + path + " OUT"
	case ".graphml":
		say = "a graph in GraphML by its name; format graphml reads it: gnnstore ingest graphml " + path + " OUT"
	}
	if say == "" {
		return nil
	}
	return fmt.Errorf("%s: %s", path, say)
}

// firstText returns the first bytes of a text.
func firstText(path string) (string, error) {
	in, err := lines.OpenBytes(path)
	if err != nil {
		return "", err
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in, neighbourBytes))
	return string(text), err
}

const neighbourBytes = 4 << 10 // by which lists of neighbours are told

// isMETIS reports whether a text begins as a graph of METIS does: with the numbers of nodes and of
// edges, and perhaps two more, and then a row of neighbours a node. So rows differ in length, and a
// short text has one for each node.
func isMETIS(text string) bool {
	rows, whole := integerRows(text)
	if len(rows) < 2 || len(rows[0]) < 2 || len(rows[0]) > 4 {
		return false
	}
	ragged := false
	for _, row := range rows[1:] {
		ragged = ragged || len(row) != len(rows[1])
		for _, v := range row {
			if v > rows[0][0] && len(rows[0]) == 2 {
				return false
			}
		}
	}
	return ragged && (!whole || int64(len(rows)-1) == rows[0][0])
}

// IsNeighbours reports whether a text begins as a list of neighbours does: rows of integers of
// different lengths. metis: it has the first line of METIS.
func IsNeighbours(text string) (is, metis bool) {
	if isMETIS(text) {
		return true, true
	}
	rows, _ := integerRows(text)
	rows = slices.DeleteFunc(rows, func(row []int64) bool { return len(row) == 0 }) // blank lines
	if len(rows) > 2 {
		rows = rows[1:] // it may have counts
	}
	for _, row := range rows {
		is = is || len(row) != len(rows[0])
	}
	return is, false
}

// integerRows returns the rows of a text that are integers between blanks, up to the last whole
// one, and nil if other text is there. whole: the text is all of its file.
func integerRows(text string) (rows [][]int64, whole bool) {
	if whole = len(text) < neighbourBytes; !whole {
		text = text[:strings.LastIndexByte(text, '\n')+1]
	}
	for row := range strings.Lines(strings.TrimRight(text, "\r\n")) {
		if row[0] == '%' || row[0] == '#' {
			continue
		}
		var cells []int64
		for _, word := range strings.Fields(row) {
			v, err := strconv.ParseInt(word, 10, 64)
			if err != nil {
				return nil, whole
			}
			cells = append(cells, v)
		}
		rows = append(rows, cells)
	}
	return rows, whole
}

// edgeReader reads rows of edges.
type edgeReader struct {
	*table
	src, dst int          // columns
	kept     []keptColumn // whose values edges keep
	bits     []uint64     // of the values of the row read last
	features []int        // columns that make a table of edge features
	wide     []int        // numbers in a cell of each; nil: not known yet
	floats   []float32    // features of the row read last
	text     bool
	classes  *classes // of labels of events
	forms    *timeForms
	token    []byte       // a buffer
	label    ingest.Token // of the event read last, where it is labelled
	labelled bool
	types    *classes // of events, each a feature
	typeAt   int      // their column
	counter  int      // column of Options.Counted, or -1
	counted  int64    // rows read so far
	numbered *Made    // whose nodes are numbered, or nil
	plain    bool     // the two first columns are integers, and no other is read
}

// openList opens a file of the edge list as a table.
func (s *Source) openList(path string) (*table, error) {
	if s.made != nil {
		return openMade(path, s.made.Edges, s.made.Unit, s.made.Each, true, s.made.Nodes == nil)
	}
	return openTable(path, s.form, true, s.text)
}

func (s *Source) openEdges(path string, forms *timeForms) (*edgeReader, error) {
	t, err := s.openList(path)
	if err != nil {
		return nil, err
	}
	t.anyText = s.o.IDType == "text"
	r := &edgeReader{
		table: t, text: s.text, classes: s.classes, types: s.types, forms: forms, wide: s.edgeWide, counter: -1,
	}
	r.token = make([]byte, 0, 32)
	if s.made != nil && s.made.Nodes == nil && s.o.Nodes == "" {
		r.numbered = s.made
	}
	if s.o.Counted {
		r.counter = slices.Index(t.header, "")
	}
	if r.types != nil && t.columns > 0 {
		if r.typeAt, err = t.column("types", s.o.Types); err != nil {
			t.Close()
			return nil, err
		}
	}
	if r.src, r.dst, err = s.o.edgeColumns(t); err == nil && t.columns > 0 {
		if err = r.place(s.kept); err == nil {
			r.features, err = r.featureColumns(&s.o)
		}
	}
	if err != nil {
		t.Close()
		return nil, err
	}
	r.plain = r.src == 0 && r.dst == 1 && len(r.kept)+len(r.features) == 0 && !r.text && r.delim != ':'
	return r, nil
}

// next appends an edge to c; io.EOF after the last.
func (r *edgeReader) next(c *ingest.EdgeChunk) error {
	line, err := r.row()
	if err != nil {
		return err
	}
	if r.plain {
		if u, v, ok := plainPair(line, r.delim, r.columns); ok {
			if err := r.inRange(u, v); err != nil {
				return err
			}
			c.Src, c.Dst = append(c.Src, u), append(c.Dst, v)
			return nil
		}
	}
	cells, err := r.cut(line)
	if err != nil {
		return err
	}
	if err := r.count(cells); err != nil {
		return err
	}
	if err := r.values(cells); err != nil {
		return err
	}
	if err := r.readFeatures(cells); err != nil {
		return err
	}
	if r.text {
		u, err := r.table.text(cells, r.src)
		if err != nil {
			return err
		}
		v, err := r.table.text(cells, r.dst)
		if err != nil {
			return err
		}
		c.SrcTexts.Append(u)
		c.DstTexts.Append(v)
	} else {
		u, err := r.id(cells, r.src)
		if err != nil {
			return err
		}
		v, err := r.id(cells, r.dst)
		if err == nil {
			err = r.inRange(u, v)
		}
		if err != nil {
			return err
		}
		c.Src, c.Dst = append(c.Src, u), append(c.Dst, v)
	}
	for i, b := range r.bits {
		c.Values[i] = append(c.Values[i], b)
	}
	return r.classify(c)
}

// inRange refuses ends that are none of the numbered nodes.
func (r *edgeReader) inRange(ends ...int64) error {
	if r.numbered == nil {
		return nil
	}
	for i, id := range ends {
		if first, last := r.numbered.First, r.numbered.First+r.numbered.Count-1; id < first || id > last {
			return bad([]int{r.src, r.dst}[i]+1, "%d is no node; they are numbered %d to %d", id, first, last)
		}
	}
	return nil
}

// count checks the column that counts rows.
func (r *edgeReader) count(cells [][]byte) error {
	if r.counter < 0 {
		return nil
	}
	cell, err := r.cell(cells, r.counter)
	if err != nil {
		return err
	}
	if n, ok := r.numerals.Integer(cell); !ok || n != r.counted {
		return bad(r.counter+1, "%q, and %d follows: the column without a name counts the rows from 0, and features go by it; sort the table by it", lines.Clip(cell), r.counted)
	}
	r.counted++
	return nil
}

// edgeChunks gathers edges.
type edgeChunks = ingest.Chunker[ingest.EdgeChunk, *ingest.EdgeChunk]

// eachEdge reads all files. What emit gets is lent for the call.
func (s *Source) eachEdge(ctx context.Context, emit func(ingest.EdgeChunk) error) error {
	var given []ingest.Part
	out := ingest.Chunks(ctx, func(c ingest.EdgeChunk) error {
		if s.o.Events && s.o.Part != "" {
			c.Parts = given[:0]
			parts(&c)
			given = c.Parts
		}
		return emit(c)
	})
	if len(s.kept) > 0 {
		out.Chunk.Values = make([][]uint64, len(s.kept))
	}
	forms := s.newForms()
	for _, path := range s.files {
		err := out.In(path)
		if err == nil {
			err = s.eachEdgeOf(path, forms, out)
		}
		if err != nil {
			return err
		}
	}
	return out.Flush()
}

func (s *Source) eachEdgeOf(path string, forms *timeForms, out *edgeChunks) error {
	r, err := s.openEdges(path, forms)
	if err != nil {
		return err
	}
	defer r.Close()
	for {
		err := r.next(&out.Chunk)
		if err == io.EOF {
			return s.checkRows(r.rows - 1)
		}
		if err != nil {
			err = r.judge(s.forgive, err)
		} else {
			if r.made == "" {
				out.Line(r.at)
			}
			err = out.Added()
		}
		if err != nil {
			return err
		}
	}
}

// refuseCounts asks about a list whose first row may be the numbers of nodes and edges, or the
// rows, columns and entries of a matrix: as many rows follow, and no id in them is larger. It reads
// on for as long as that is so.
func (s *Source) refuseCounts(path string) error {
	r, err := s.openEdges(path, s.newForms())
	if err != nil {
		return err
	}
	defer r.Close()
	if s.o.Header == "no" || r.header != nil || len(r.counts) < 2 || s.text || r.src != 0 || r.dst != 1 {
		return nil
	}
	counts, said := slices.Clone(r.counts), numbered(r.counts) // before rows are read
	nodes, edges := counts[:len(counts)-1], counts[len(counts)-1]
	// nodes is one number, or the numbers of rows and columns of a matrix.
	sources, destinations := nodes[0], nodes[len(nodes)-1]
	for n := int64(0); n <= edges+1; n++ {
		c := ingest.EdgeChunk{Values: make([][]uint64, len(s.kept))}
		err := r.next(&c)
		switch {
		case err == io.EOF && n == edges+1:
			return ingest.Ask("%s: line %d: %s count what follows, %d rows without an id beyond %s, or are an edge; say {header} yes to "+
				"pass over them, or {header} no", path, r.first, said, edges, numbered(nodes))
		case err != nil || n > 0 && (c.Src[0] > sources || c.Dst[0] > destinations):
			return nil // what is wrong is told when all are read
		}
	}
	return nil
}

// numbered writes numbers: 4, 4 and 3.
func numbered(numbers []int64) string {
	var all []string
	for _, n := range numbers {
		all = append(all, strconv.FormatInt(n, 10))
	}
	last := len(all) - 1
	if last == 0 {
		return all[0]
	}
	return strings.Join(all[:last], ", ") + " and " + all[last]
}

// plainPair reads the usual line: up to 18 digits, which cannot overflow and do not begin with
// zeros that would be lost, the delimiter, digits, and the end, or other cells without quotes, so
// many that there are columns in all.
func plainPair(line []byte, delim byte, columns int) (u, v int64, ok bool) {
	i := 0
	for i < len(line) && i < 19 && line[i]-'0' <= 9 {
		u = u*10 + int64(line[i]-'0')
		i++
	}
	if i == 0 || i == 19 || i == len(line) || line[i] != delim || line[0] == '0' && i > 1 {
		return 0, 0, false
	}
	rest := line[i+1:]
	n := 0
	for n < len(rest) && n < 19 && rest[n]-'0' <= 9 {
		v = v*10 + int64(rest[n]-'0')
		n++
	}
	if n == 0 || n == 19 || rest[0] == '0' && n > 1 {
		return 0, 0, false
	}
	if rest = rest[n:]; columns == 2 {
		return u, v, len(rest) == 0
	}
	return u, v, cellsAfter(rest, delim) == columns-2
}

// cellsAfter counts the cells that follow one; -1 where it takes more than counting delimiters.
func cellsAfter(rest []byte, delim byte) int {
	n := 0
	for i, c := range rest {
		switch {
		case c == '"' || c != delim && i == 0:
			return -1
		case c == delim && (delim != ' ' || i+1 < len(rest) && rest[i+1] != ' '):
			n++
		case delim == ' ' && (c < ' ' || c >= 0x80):
			return -1 // other blanks
		}
	}
	return n
}

// smallIDs are kept as bits: 128 MiB at most.
const smallIDs = 1 << 30

// idSet is a set of ids.
type idSet struct {
	bits   []uint64 // of ids below smallIDs
	large  []int64  // the others: ascending and without repeats up to sorted, then as they came
	sorted int
}

func (s *idSet) add(id int64) {
	if id < smallIDs {
		for int(id>>6) >= len(s.bits) {
			s.bits = append(s.bits, make([]uint64, max(1024, min(len(s.bits), smallIDs/64-len(s.bits)), int(id>>6)+1-len(s.bits)))...)
		}
		s.bits[id>>6] |= 1 << (id & 63)
		return
	}
	if s.large = append(s.large, id); len(s.large) > 2*s.sorted+1<<20 {
		s.compact()
	}
}

func (s *idSet) compact() {
	slices.Sort(s.large)
	s.large = slices.Compact(s.large)
	s.sorted = len(s.large)
}

// count returns the number of ids; dense is true if they are 0…count-1.
func (s *idSet) count() (n int64, dense bool) {
	s.compact()
	last := int64(-1)
	for i, word := range s.bits {
		n += int64(bits.OnesCount64(word))
		if word != 0 {
			last = int64(i)*64 + int64(bits.Len64(word)) - 1
		}
	}
	return n + int64(len(s.large)), len(s.large) == 0 && last == n-1
}

// ascending returns the ids.
func (s *idSet) ascending() []int64 {
	n, _ := s.count()
	ids := make([]int64, 0, n)
	for i, word := range s.bits {
		for ; word != 0; word &= word - 1 {
			ids = append(ids, int64(i)*64+int64(bits.TrailingZeros64(word)))
		}
	}
	return append(ids, s.large...)
}
