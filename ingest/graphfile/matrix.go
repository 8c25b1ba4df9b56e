package graphfile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/ingest/edgelist"
	"github.com/gnnstore/gnnstore/ingest/lines"
)

// matrix is the form of a matrix, by its banner and its size line.
type matrix struct {
	banner  bool
	values  bool // entries have a value
	general bool
	skew    bool
	lines   int // of the file up to the size line
	rows    int64
	columns int64
	entries int64
	width   int // cells of an entry
}

// mostHeader bounds the lines before the size line.
const mostHeader = 1 << 20

// Nodes without edges are rare in real graphs. A size line with far more nodes than entries is
// taken for damage, since the dataset has room for each node.
const (
	fewNodes      = 1 << 24
	nodesPerEntry = 1000
)

// OpenMatrix opens a matrix in the Matrix Market format.
func OpenMatrix(path string, o edgelist.Options) (*edgelist.Source, error) {
	open, err := findMatrix(path)
	if err != nil {
		return nil, err
	}
	m, err := readMatrix(path, open)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	o.Src, o.Dst, o.IDType = "row", "col", "int"
	if m.values && o.Weight == "" {
		o.Weight = "value"
	}
	made := &edgelist.Made{
		Rows: m.entries, First: 1, Count: m.rows, Undirected: m.banner && !m.general && !m.skew,
		Edges:   func() (io.ReadCloser, error) { return m.open(open) },
		Remarks: []string{fmt.Sprintf("%s: nodes are the rows 1 to %d of the matrix", path, m.rows)},
	}
	if m.skew {
		made.Unit, made.Each = "entry", 2
	}
	if !m.banner {
		made.Remarks = append(made.Remarks, path+": there is no banner, so the matrix is taken as general, an edge an entry; {undirected} adds the reverses")
	}
	return edgelist.OpenMade(path, made, o)
}

// readMatrix reads the start of a matrix.
func readMatrix(path string, open opener) (*matrix, error) {
	r, err := open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	in := bufio.NewReaderSize(r, 64<<10)
	m, err := readSize(in)
	if err != nil {
		return nil, err
	}
	for m.entries > 0 {
		line, err := shortLine(in)
		if err == io.EOF {
			return nil, fmt.Errorf("its size line declares %d entries, and none follows; it is truncated, so fetch it again", m.entries)
		}
		if err != nil {
			return nil, err
		}
		if m.width = len(bytes.Fields(line)); m.width > 0 {
			break
		}
	}
	switch {
	case m.entries == 0:
		m.width = 2
	case m.width < 2 || m.width > 3:
		return nil, fmt.Errorf("line %d: an entry has a row, a column and perhaps a value, and the first one has %d cells", m.lines+1, m.width)
	case m.values && m.width == 2:
		return nil, fmt.Errorf("line %d: the entry has no value, and its banner says that entries have one; write pattern there in its place", m.lines+1)
	case !m.banner:
		m.values = m.width == 3
	}
	return m, nil
}

// readSize reads up to the size line.
func readSize(in *bufio.Reader) (*matrix, error) {
	m := &matrix{general: true}
	for {
		line, err := shortLine(in)
		if err == io.EOF && m.lines == 0 {
			return nil, errors.New("the file is empty; fetch it again")
		}
		if err == io.EOF {
			return nil, errors.New("there is no size line in it; it is truncated, so fetch it again")
		}
		if err != nil {
			return nil, err
		}
		if m.lines++; m.lines > mostHeader {
			return nil, fmt.Errorf("no size line in its first %d lines, as a matrix has it", mostHeader)
		}
		line = bytes.TrimPrefix(line, []byte("\ufeff"))
		if bytes.IndexByte(bytes.TrimRight(line, "\r"), '\r') >= 0 {
			return nil, fmt.Errorf("line %d: its lines end in CR alone, as old Macs wrote them; convert them: tr '\\r' '\\n'", m.lines)
		}
		words := strings.Fields(strings.ToLower(string(line[:min(len(line), 1<<10)])))
		if m.lines == 1 && len(words) > 0 && (words[0] == "%%matrixmarket" || words[0] == "%matrixmarket") {
			if err := m.readBanner(words[1:]); err != nil {
				return nil, fmt.Errorf("line 1: %w", err)
			}
			continue
		}
		if len(words) == 0 || line[0] == '%' {
			continue
		}
		if err := m.readCounts(words); err != nil {
			return nil, fmt.Errorf("line %d: %w", m.lines, err)
		}
		return m, nil
	}
}

// readBanner reads the words behind %%MatrixMarket.
func (m *matrix) readBanner(words []string) error {
	if len(words) < 4 {
		return errors.New("the banner is incomplete; write %%MatrixMarket matrix coordinate, then pattern or real, then general or symmetric")
	}
	object, format, field, symmetry := words[0], words[1], words[2], words[3]
	m.banner = true
	switch field {
	case "real", "double", "integer", "unsigned-integer":
		m.values = true
	case "pattern":
	case "complex":
		return errors.New("its values are complex, and weights are real; write one number an entry: " +
			"scipy.io.mmwrite('graph.mtx', abs(scipy.io.mmread(FILE)))")
	default:
		return fmt.Errorf("the banner has %q in place of real, integer or pattern", lines.ClipText(field))
	}
	switch symmetry {
	case "general":
	case "symmetric":
		m.general = false
	case "skew-symmetric":
		m.general, m.skew = false, true
	default:
		return fmt.Errorf("the banner has %q in place of general, symmetric or skew-symmetric", lines.ClipText(symmetry))
	}
	switch {
	case object != "matrix":
		return fmt.Errorf("it has a %q, and a graph is a matrix", lines.ClipText(object))
	case format == "array":
		return errors.New("it has an array of all entries, zeros too, which is no list of edges; write coordinates: " +
			"scipy.io.mmwrite('graph.mtx', scipy.sparse.coo_array(scipy.io.mmread(FILE)))")
	case format != "coordinate":
		return fmt.Errorf("the banner has %q in place of coordinate", lines.ClipText(format))
	}
	return nil
}

// readCounts reads the size line: rows, columns and entries.
func (m *matrix) readCounts(words []string) error {
	if len(words) != 3 {
		say := ""
		if !m.banner {
			say = "; if it is a list of edges, say gnnstore ingest csv"
		}
		return fmt.Errorf("found %d numbers where the size line has three, of rows, columns and entries%s", len(words), say)
	}
	for i, n := range []*int64{&m.rows, &m.columns, &m.entries} {
		v, err := strconv.ParseInt(words[i], 10, 64)
		if err != nil || v < 0 {
			return fmt.Errorf("%q is no count of rows, columns or entries", lines.ClipText(words[i]))
		}
		*n = v
	}
	switch {
	case m.rows != m.columns:
		return fmt.Errorf("a matrix of %d rows and %d columns joins two kinds of nodes, numbered apart; write its entries and "+
			"both kinds as tables, and describe them: gnnstore ingest table {infer} DIR writes a first schema", m.rows, m.columns)
	case m.rows == 0:
		return errors.New("a matrix without rows has no nodes")
	case m.rows > math.MaxUint32:
		return fmt.Errorf("%d rows, and a graph has at most %d nodes", m.rows, uint32(math.MaxUint32))
	case m.rows > fewNodes && m.rows/nodesPerEntry > m.entries:
		return fmt.Errorf("it declares %d rows and %d entries, so that nearly no node has an edge; correct the size line, "+
			"or write the entries as a list of edges, whose nodes are those in it, for gnnstore ingest csv", m.rows, m.entries)
	}
	return nil
}

// open opens the text of entries under a header. Up to the size line, lines are empty comments, so
// that each line keeps its number.
func (m *matrix) open(open opener) (io.ReadCloser, error) {
	r, err := open()
	if err != nil {
		return nil, err
	}
	in := bufio.NewReaderSize(r, 64<<10)
	again, err := readSize(in)
	if err != nil || again.lines != m.lines {
		r.Close()
		return nil, errors.Join(err, errors.New("the file changed while it was read"))
	}
	header := "row col"
	if m.width == 3 {
		header += " value"
	}
	if m.skew {
		return readCloser{newSkew(strings.ReplaceAll(header, " ", ","), in, m), r}, nil
	}
	header = strings.Repeat("%\n", m.lines-1) + header + "\n"
	return readCloser{io.MultiReader(strings.NewReader(header), in), r}, nil
}

// newSkew returns the entries of a skew-symmetric matrix, each followed by its counterpart.
func newSkew(header string, in *bufio.Reader, m *matrix) io.Reader {
	line := m.lines
	return newRows(header, func(text []byte) ([]byte, error) {
		for {
			row, err := shortLine(in)
			if err != nil {
				return text, err
			}
			line++
			cells := bytes.Fields(row)
			switch {
			case len(cells) == 0 || cells[0][0] == '%':
				continue
			case len(cells) != m.width:
				return text, fmt.Errorf("line %d: an entry of %d cells, and the first one has %d", line, len(cells), m.width)
			case bytes.Equal(cells[0], cells[1]):
				return text, fmt.Errorf("line %d: an entry of the diagonal, which a skew-symmetric matrix does not have; "+
					"write general in the banner, and all entries", line)
			}
			text = appendRow(text, cells...)
			cells[0], cells[1] = cells[1], cells[0]
			if m.width == 3 {
				if positive, negative := bytes.CutPrefix(cells[2], []byte{'-'}); negative {
					cells[2] = positive
				} else {
					cells[2] = append([]byte{'-'}, bytes.TrimPrefix(cells[2], []byte{'+'})...)
				}
			}
			return appendRow(text, cells...), nil
		}
	})
}

// shortLine reads a line without its end, and returns its first 64 KiB.
func shortLine(in *bufio.Reader) ([]byte, error) {
	line, more, err := in.ReadLine()
	if err != nil {
		return line, err
	}
	if line = bytes.Clone(line); !more {
		// ReadLine returns the start of a line without the error behind it.
		if _, err := in.Peek(1); err != nil && err != io.EOF {
			return nil, err
		}
		return line, nil
	}
	for err == nil && more {
		_, more, err = in.ReadLine()
	}
	return line, err
}

// readCloser reads one thing and closes another.
type readCloser struct {
	io.Reader
	io.Closer
}
