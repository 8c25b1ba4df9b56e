package ogb

import (
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/store"
)

// maxCount is more nodes or edges than any graph has, and small enough to be doubled.
const maxCount = 1 << 48

// layouts are known by a file in raw/, the more telling ones first.
var layouts = []struct {
	file string
	read func(*Source) error
}{
	{"triplet-type-list.csv.gz", (*Source).typedTables},
	{"edge_index_dict.npz", (*Source).typedArrays},
	{"data.npz", (*Source).arrays},
	{"edge.csv.gz", (*Source).tables},
}

// findLayout lays down the graph.
func (s *Source) findLayout() error {
	for _, l := range layouts {
		if s.has("raw/" + l.file) {
			return l.read(s)
		}
	}
	return fmt.Errorf("%s: no raw/edge.csv.gz in it, nor another file that OGB begins with (raw/data.npz, raw/triplet-type-list.csv.gz, raw/edge_index_dict.npz); fetch it again",
		s.path)
}

func (s *Source) note(file, why string) {
	s.schema.Skipped = append(s.schema.Skipped, s.there(file)+": "+why)
}

// noteOther notes what the layout does not have.
func (s *Source) noteOther(file string) {
	why := "it is no part of this layout"
	if strings.HasSuffix(file, ".csv") && s.has(file+".gz") {
		why = path.Base(file) + ".gz beside it is read instead"
	}
	s.note(file, why)
}

// uses remembers a file for the schema's Identity.
func (s *Source) uses(file string) { s.files = append(s.files, s.at(file)) }

// table is a .csv.gz file with a row for each of something that has been counted.
func (s *Source) table(file string, rows int64, declared string) *table {
	s.uses(file)
	return &table{folder: s.folder, file: file, rows: rows, declared: declared}
}

// readCount reads a file that has a number for each graph, and one graph.
func (s *Source) readCount(file string) (n int64, declared string, err error) {
	s.uses(file)
	declared = s.at(file)
	t, err := s.csv(file)
	if err != nil {
		return 0, declared, err
	}
	defer t.Close()
	var one, more [1]int64
	if err := t.Ints(one[:]); err == io.EOF {
		return 0, declared, fmt.Errorf("%s: there is no number in it; fetch it again", declared)
	} else if err != nil {
		return 0, declared, err
	}
	if one[0] < 0 || one[0] > maxCount {
		return 0, declared, t.Errorf("%d is not a count", one[0])
	}
	if err := t.Ints(more[:]); err == nil {
		return 0, declared, t.Errorf("a second graph; node-property datasets have one")
	} else if err != io.EOF {
		return 0, declared, err
	}
	return one[0], declared, nil
}

// tables is the layout of one type of node in .csv.gz files.
func (s *Source) tables() error {
	nodes, nodesIn, err := s.readCount("raw/num-node-list.csv.gz")
	if err != nil {
		return err
	}
	count, countIn, err := s.readCount("raw/num-edge-list.csv.gz")
	if err != nil {
		return err
	}
	s.addType("node", nodes)
	s.addRelation("node", "to", "node", count, s.table("raw/edge.csv.gz", count, countIn))
	entries, err := s.list("raw")
	if err != nil {
		return err
	}
	for _, e := range entries {
		file := "raw/" + e.Name()
		switch kind, attribute := attributeOf(e.Name()); kind {
		case ofGraph:
		case ofNodes:
			err = s.addNodeData(0, file, attribute, func() (section, error) { return s.table(file, nodes, nodesIn), nil })
		case ofEdges:
			err = s.addEdgeData(0, file, attribute, func() (section, error) { return s.table(file, count, countIn), nil })
		default:
			s.noteOther(file)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// kind is the subject of a file or array.
type kind int

const (
	ofNothing kind = iota
	ofGraph
	ofNodes
	ofEdges
)

// attributeOf reads the name of a .csv.gz file: node-feat is the one that upstream writes with a
// hyphen.
func attributeOf(file string) (kind, string) {
	name, ok := strings.CutSuffix(file, ".csv.gz")
	switch {
	case !ok:
		return ofNothing, ""
	case name == "edge" || name == "num-node-list" || name == "num-edge-list":
		return ofGraph, ""
	case name == "node-feat" || name == "node-label":
		return ofNodes, strings.TrimPrefix(name, "node-")
	case name == "species":
		return ofNodes, name // as old downloads of ogbn-proteins have it
	case name == "edge-feat":
		return ofEdges, "feat"
	}
	return attributeOfKey(name)
}

// attributeOfKey reads the key of an array, or the name of a file of them.
func attributeOfKey(key string) (kind, string) {
	if name, ok := strings.CutPrefix(key, "node_"); ok && name != "" {
		return ofNodes, name
	}
	if name, ok := strings.CutPrefix(key, "edge_"); ok && name != "" {
		return ofEdges, name
	}
	return ofNothing, ""
}

func (s *Source) addType(name string, count int64) {
	s.schema.NodeTypes = append(s.schema.NodeTypes, ingest.NodeType{Name: name, Count: count})
}

func (s *Source) addRelation(src, name, dst string, count int64, ends section) {
	e := edges{ends: ends, count: count, reverse: s.reverse}
	if s.reverse {
		count *= 2
	}
	s.schema.Relations = append(s.schema.Relations, ingest.Relation{Src: src, Name: name, Dst: dst, Edges: count})
	s.edges = append(s.edges, e)
}

// addNodeData takes features and labels of a node type, and notes what else there is. what names it
// in notes.
func (s *Source) addNodeData(nodeType int, what, attribute string, open func() (section, error)) error {
	of := s.schema.NodeTypes[nodeType]
	if attribute == "year" && s.yearColumns > 0 {
		data, err := open()
		if err != nil {
			return err
		}
		width, err := data.columns()
		if err == nil && width > 1 {
			err = fmt.Errorf("%s: %d columns, and a node has one year; leave {year_columns} out", data.place(), width)
		}
		s.yearsOf[of.Name] = yearSection{data, what, of.Count}
		return err
	}
	if attribute == "year" { // edges may be split by it; one that cannot be read is as good as none
		if data, err := open(); err == nil {
			if width, err := data.columns(); err == nil && width <= 1 {
				s.schema.NodeTypes[nodeType].Columns = []string{attribute}
				s.years[nodeType] = yearColumn{yearSection: yearSection{data, what, of.Count}}
			}
		}
	}
	if attribute != "feat" && attribute != "label" {
		s.note(what, "further columns of nodes are not kept")
		return nil
	}
	data, err := open()
	if err != nil {
		return err
	}
	width, err := data.columns()
	if err != nil {
		return err
	}
	if attribute == "feat" {
		if width == 0 && of.Count == 0 {
			return nil
		}
		s.schema.Tables = append(s.schema.Tables, ingest.Table{Name: "feat", NodeType: of.Name, Dim: max(width, 1)})
		s.rows = append(s.rows, rows{section: data})
		return nil
	}
	tasks := max(width, 1)
	label := ingest.Label{Name: "label", NodeType: of.Name}
	if tasks > 1 {
		label.Multi, label.Classes = true, tasks
	} else if s.info.Tasks == 1 {
		label.Classes = s.info.Classes
	}
	s.schema.Labels = append(s.schema.Labels, label)
	s.labels = append(s.labels, labels{data, tasks})
	return nil
}

// columnElems are how the columns that OGB's datasets have are stored; others go by their array, or
// are numbers with a fraction for all that a table says.
var columnElems = map[string]store.Elem{"weight": store.F32, "year": store.I64, "reltype": store.I64}

// addEdgeData takes features and columns of a relation.
func (s *Source) addEdgeData(relation int, what, attribute string, open func() (section, error)) error {
	of := &s.schema.Relations[relation]
	if attribute == "reltype" && s.typed {
		s.note(what, "the relation says it")
		s.reltypes[relation] = open
		return nil
	}
	data, err := open()
	if err != nil {
		return err
	}
	width, err := data.columns()
	if err != nil {
		return err
	}
	switch {
	case width == 0 && of.Edges == 0:
	case attribute == "feat":
		s.schema.Tables = append(s.schema.Tables, ingest.Table{Name: "feat", Relation: of.Key(), Dim: max(width, 1)})
		s.rows = append(s.rows, rows{section: data, twice: s.reverse})
	case width > 1:
		s.note(what, strconv.Itoa(width)+" columns an edge are not kept, one is")
	case attribute == "id":
		s.note(what, "ids of edges are not kept, but their order is")
	default:
		elem, ok := columnElems[attribute]
		if m, isArray := data.(*member); isArray && !ok {
			elem = m.elem()
		} else if !ok {
			elem = store.F32
		}
		of.Columns = append(of.Columns, ingest.EdgeColumn{Name: attribute, Elem: elem})
		s.edges[relation].columns = append(s.edges[relation].columns, edgeColumn{data, elem})
	}
	return nil
}
