package npz

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/npy"
)

const (
	wanted        = "this layout needs a scipy CSR adjacency: adj_indptr, adj_indices, adj_shape and, for weights, adj_data"
	maxClassNames = 1 << 20 // bytes
)

// findAll reads the headers and lays down the schema.
func (s *Source) findAll() error {
	s.schema.Name = strings.TrimSuffix(filepath.Base(s.name), ".npz")
	used := make(map[string]bool)
	if err := s.findEdges(used); err != nil {
		return s.fail(context.Background(), err, s.startingWith("adj")...)
	}
	if err := s.findFeatures(used); err != nil {
		return s.fail(context.Background(), err, s.startingWith("attr")...)
	}
	if err := s.findLabels(used); err != nil {
		return s.fail(context.Background(), err, s.startingWith("labels", "class_names")...)
	}
	for _, key := range s.keys {
		switch {
		case used[key]:
		case key == "node_names":
			s.skip(key, "names of nodes are not kept")
		case key == "attr_names":
			s.skip(key, "names of features are not kept")
		case strings.HasPrefix(key, "attr"):
			s.skip(key, "the features come from other keys")
		default:
			s.skip(key, "it is no part of this layout")
		}
	}
	for _, name := range s.others {
		s.skip(name, "it is not an array")
	}
	return nil
}

func (s *Source) startingWith(prefixes ...string) []string {
	var keys []string
	for _, key := range s.keys {
		for _, prefix := range prefixes {
			if strings.HasPrefix(key, prefix) {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

func (s *Source) skip(key, why string) {
	s.schema.Skipped = append(s.schema.Skipped, key+": "+why)
}

func (s *Source) findEdges(used map[string]bool) error {
	var err error
	if s.adj, err = s.findCSR("adj"); err != nil {
		return err
	}
	if s.adj == nil {
		return s.missingKey("adj_indptr", wanted)
	}
	if s.adj.shape == "" {
		s.adj.cols = s.adj.rows
	}
	if s.adj.rows != s.adj.cols {
		return fmt.Errorf("%s: (%d, %d) is not square; an adjacency has a row and a column for each node", s.adj.shape, s.adj.rows, s.adj.cols)
	}
	for _, key := range append(s.adj.keys(), s.adj.shape) {
		used[key] = true
	}
	s.schema.NodeTypes = []ingest.NodeType{{Name: "node", Count: s.adj.rows}}
	s.schema.Relations = []ingest.Relation{{Src: "node", Name: "to", Dst: "node", Edges: s.adj.entries}}
	s.counted = s.adj.data == ""
	return nil
}

func (s *Source) findFeatures(used map[string]bool) error {
	var err error
	if s.attr, err = s.findCSR("attr"); err != nil {
		return err
	}
	var rows, cols int64
	var where string
	switch {
	case s.attr != nil:
		if s.attr.shape == "" {
			return s.missingKey(strings.TrimSuffix(s.attr.indptr, "indptr")+"shape", "sparse features need it for the number of columns")
		}
		rows, cols, where = s.attr.rows, s.attr.cols, s.attr.shape
		for _, key := range append(s.attr.keys(), s.attr.shape) {
			used[key] = true
		}
	case s.files["attr_matrix"] != nil:
		h, err := s.header("attr_matrix")
		if errors.Is(err, npy.ErrUnsupported) {
			used["attr_matrix"] = true
			s.schema.NoFeatures = s.name + ": " + err.Error() + `; convert it in Python and save it again: attr_matrix = numpy.stack(attr_matrix).astype("float32")`
			return s.passOver("attr_matrix", err.Error())
		}
		if err != nil {
			return err
		}
		if len(h.Shape) != 2 || h.Type.Kind == npy.Unicode || h.Type.Kind == npy.Bytes {
			return fmt.Errorf("attr_matrix: it is %s, a row of numbers for each node is expected", h.String())
		}
		rows, cols, where = h.Shape[0], h.Shape[1], "attr_matrix"
		used["attr_matrix"] = true
		s.dense = "attr_matrix"
	case s.files["attr_indices"] != nil || s.files["attr_data"] != nil:
		return s.missingKey("attr_indptr", "sparse features are a scipy CSR matrix: attr_indptr, attr_indices, attr_shape, attr_data")
	default:
		s.schema.NoFeatures = s.name + ": " + s.missingKey("attr_indptr or attr_matrix", "features have these names, or the edges are named as well: "+
			"{array_edges} adj_ {array_features} NAME").Error()
		return nil
	}
	if rows != s.adj.rows {
		return fmt.Errorf("%s: %d rows of features, %d nodes", where, rows, s.adj.rows)
	}
	if cols > ingest.MaxColumns {
		return fmt.Errorf("%s: %d columns; dense rows have at most %d", where, cols, ingest.MaxColumns)
	}
	if cols == 0 {
		s.skip(where, "features of no columns")
		return nil
	}
	s.schema.Tables = []ingest.Table{{Name: "feat", NodeType: "node", Dim: int(cols)}}
	return nil
}

func (s *Source) findLabels(used map[string]bool) error {
	if s.files["labels"] == nil {
		s.schema.NoLabels = s.name + ": " + s.missingKey("labels", "labels have this name, or the edges are named as well: {array_edges} adj_ {array_labels} NAME").Error()
		return nil
	}
	used["labels"] = true
	h, err := s.header("labels")
	if errors.Is(err, npy.ErrUnsupported) {
		return fmt.Errorf("%w; convert them in Python and save them again: labels = labels.astype(str)", err)
	}
	if err != nil {
		return err
	}
	column := len(h.Shape) == 1 || len(h.Shape) == 2 && h.Shape[1] == 1
	if !column {
		return fmt.Errorf("labels: it is %s, a class for each node is expected", h.String())
	}
	if h.Shape[0] != s.adj.rows {
		return fmt.Errorf("labels: %d labels, %d nodes", h.Shape[0], s.adj.rows)
	}
	s.labels = true
	if s.named = h.Type.Kind == npy.Unicode || h.Type.Kind == npy.Bytes; s.named {
		s.schema.Labels = []ingest.Label{{Name: "label", NodeType: "node"}}
		if used["class_names"] = s.files["class_names"] != nil; used["class_names"] {
			s.skip("class_names", "the labels are names themselves")
		}
		return nil
	}
	names, err := s.classNames(used)
	if err != nil {
		return err
	}
	s.schema.Labels = []ingest.Label{{Name: "label", NodeType: "node", Classes: len(names), ClassNames: names}}
	return nil
}

// classNames returns the names if they can be read. They are a comfort: without them classes go by
// number.
func (s *Source) classNames(used map[string]bool) ([]string, error) {
	const key, comfort = "class_names", "; classes go by number"
	if s.files[key] == nil {
		return nil, nil
	}
	used[key] = true
	m, err := s.open(key)
	if err != nil {
		return nil, s.passOver(key, err.Error()+comfort)
	}
	defer m.body.Close()
	h := m.Header()
	if len(h.Shape) != 1 || h.Bytes() > maxClassNames {
		return nil, s.passOver(key, key+": it is "+h.String()+", not a list of names"+comfort)
	}
	names := make([]string, h.Len())
	if _, err := m.ReadStrings(names); err != nil && err != io.EOF {
		return nil, s.passOver(key, key+": "+err.Error()+comfort)
	}
	return names, m.finish()
}

// passOver puts a key aside that cannot be read, unless it is the download that is damaged.
func (s *Source) passOver(key, why string) error {
	if err := s.verify(context.Background(), key); err != nil {
		return err
	}
	s.schema.Skipped = append(s.schema.Skipped, why)
	return nil
}

// Schema reads adj_data through on its first call, if there is one: see the package comment. So it
// does with labels of text.
func (s *Source) Schema(ctx context.Context) (*ingest.Schema, error) {
	if !s.counted {
		zeros, weighted, err := s.scanWeights(ctx, s.adj)
		if err != nil {
			return nil, s.fail(ctx, err, s.adj.data)
		}
		s.counted = true
		s.schema.Relations[0].Edges = s.adj.entries - zeros
		if zeros > 0 {
			s.skip(s.adj.data, strconv.FormatInt(zeros, 10)+" explicit zeros are not edges")
		}
		if weighted {
			s.skip(s.adj.data, "weights of edges are not kept")
		}
	}
	if s.named && s.texts == nil {
		if err := s.learnLabels(ctx); err != nil {
			return nil, s.fail(ctx, err, "labels")
		}
	}
	return new(s.schema), nil
}
