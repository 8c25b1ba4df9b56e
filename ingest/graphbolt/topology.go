package graphbolt

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/pickle"
	"github.com/gnnstore/gnnstore/ingest/torch"
)

// csc are the edges of one type in what GraphBolt makes of a graph: in-edges of all nodes, all
// types among each other, and ids over all types.
type csc struct {
	path     string
	memory   int64    // of the ingest
	typ      int64    // of its edges; -1 where there is one type
	src, dst [2]int64 // ids of the nodes at its ends: from, up to
}

// topologyState is the state of a FusedCSCSamplingGraph.
type topologyState struct {
	file                                       *torch.File
	indptr, indices, nodeTypeOffset, edgeTypes *torch.Tensor
	nodeTypes, relations                       map[string]int64
	attributes                                 []string
}

// openTopology reads graph_topology; its tensors are in the file that the caller closes.
func openTopology(path string, memory int64) (_ *topologyState, err error) {
	f, err := torch.Open(path, memory)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f.Close()
			err = fmt.Errorf("%s: %w", path, err)
		}
	}()
	state := findState(f.Value(), 8)
	if state == nil {
		return nil, errors.New("it holds no FusedCSCSamplingGraph; preprocess the dataset again, or bring the original files back")
	}
	t := &topologyState{file: f}
	tensors, _ := state.Get("independent_tensors").(*pickle.Dict)
	for key, to := range map[string]**torch.Tensor{
		"indptr": &t.indptr, "indices": &t.indices, "node_type_offset": &t.nodeTypeOffset, "type_per_edge": &t.edgeTypes,
	} {
		v := tensors.Get(key)
		*to, _ = v.(*torch.Tensor)
		if *to == nil && (v != nil || key == "indptr" || key == "indices") {
			return nil, fmt.Errorf("its %s is %s, and a tensor is expected", key, pickle.Kind(v))
		}
		if *to != nil && (len((*to).Shape) != 1 || !(*to).Type.Number()) {
			return nil, fmt.Errorf("its %s is %s, and a list of integers is expected", key, (*to).String())
		}
	}
	if t.indptr.Len() < 1 {
		return nil, errors.New("its indptr is empty")
	}
	if t.edgeTypes != nil && t.edgeTypes.Len() != t.indices.Len() {
		return nil, fmt.Errorf("%d types of %d edges", t.edgeTypes.Len(), t.indices.Len())
	}
	if t.nodeTypes, err = numbers(state.Get("node_type_to_id")); err != nil {
		return nil, fmt.Errorf("node_type_to_id: %w", err)
	}
	if t.relations, err = numbers(state.Get("edge_type_to_id")); err != nil {
		return nil, fmt.Errorf("edge_type_to_id: %w", err)
	}
	for _, of := range []string{"node_attributes", "edge_attributes"} {
		if d, ok := state.Get(of).(*pickle.Dict); ok {
			for _, k := range d.Keys {
				if name, ok := pickle.Text(k); ok {
					t.attributes = append(t.attributes, of+"."+name)
				}
			}
		}
	}
	return t, nil
}

// findState finds the dict of dicts inside the objects around it, a Python class and the
// TorchScript class in it.
func findState(v any, depth int) *pickle.Dict {
	if depth == 0 {
		return nil
	}
	var inside []any
	switch v := v.(type) {
	case *pickle.Dict:
		if _, ok := v.Get("independent_tensors").(*pickle.Dict); ok {
			return v
		}
		inside = v.Values
	case *pickle.Object:
		inside = []any{v.State}
	case pickle.Tuple:
		inside = v
	}
	for _, w := range inside[:min(len(inside), 8)] {
		if d := findState(w, depth-1); d != nil {
			return d
		}
	}
	return nil
}

// numbers are the ids of types: integers, or tensors of one.
func numbers(v any) (map[string]int64, error) {
	d, ok := v.(*pickle.Dict)
	if !ok {
		if v == nil {
			return nil, nil
		}
		return nil, fmt.Errorf("it is %s, and a dict is expected", pickle.Kind(v))
	}
	ids := map[string]int64{}
	for i, k := range d.Keys {
		name, ok := pickle.Text(k)
		if !ok {
			return nil, fmt.Errorf("a key of %s", pickle.Kind(k))
		}
		switch v := d.Values[i].(type) {
		case int64:
			ids[name] = v
		case *torch.Tensor:
			var one [1]int64
			if v.Len() != 1 {
				return nil, fmt.Errorf("%s: a tensor of %d elements", name, v.Len())
			}
			if _, err := v.Reader().ReadInt64s(one[:]); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			ids[name] = one[0]
		default:
			return nil, fmt.Errorf("%s: %s where a number is expected", name, pickle.Kind(v))
		}
	}
	return ids, nil
}

const maxTypes = 1 << 16

// findTopology lays down nodes and edges of a dataset that has been preprocessed.
func (s *Source) findTopology(m *metadata) error {
	if m.Topology == nil || m.Topology.Type != "FusedCSCSamplingGraph" {
		return errors.New("there is neither graph nor a graph_topology of type FusedCSCSamplingGraph; " +
			"a GraphBolt dataset has graph: nodes and edges")
	}
	path, err := s.path(file{Path: m.Topology.Path})
	if err != nil {
		return fmt.Errorf("graph_topology: %w", err)
	}
	t, err := openTopology(path, s.memory)
	if err != nil {
		return fmt.Errorf("graph_topology: %w", err)
	}
	defer t.file.Close()
	nodes := t.indptr.Len() - 1
	for _, name := range t.attributes {
		if name != "edge_attributes._ORIGINAL_EDGE_ID" {
			s.skip("%s: %s: attributes of a preprocessed graph are not kept", path, name)
		}
	}
	if t.nodeTypeOffset == nil {
		if t.edgeTypes != nil {
			return fmt.Errorf("graph_topology: %s: edges have types and nodes have none", path)
		}
		s.schema.NodeTypes = []ingest.NodeType{{Name: "node", Count: nodes}}
		s.schema.Relations = []ingest.Relation{{Src: "node", Name: "to", Dst: "node", Edges: t.indices.Len()}}
		all := [2]int64{0, nodes}
		s.relations = []relation{{path: path, csc: &csc{path, s.memory, -1, all, all}}}
		return nil
	}
	if err := s.findTyped(path, t, nodes); err != nil {
		return fmt.Errorf("graph_topology: %s: %w", path, err)
	}
	return nil
}

func (s *Source) findTyped(path string, t *topologyState, nodes int64) error {
	n := t.nodeTypeOffset.Len() - 1
	if n < 1 || n > maxTypes || int64(len(t.nodeTypes)) != n || t.edgeTypes == nil || len(t.relations) == 0 {
		return fmt.Errorf("%d node types have %d names, and %d relations; preprocess the dataset again", n,
			len(t.nodeTypes), len(t.relations))
	}
	offsets := make([]int64, n+1)
	if _, err := t.nodeTypeOffset.Reader().ReadInt64s(offsets); err != nil {
		return err
	}
	if !slices.IsSorted(offsets) || offsets[0] != 0 || offsets[n] != nodes {
		return fmt.Errorf("node types end at %v, and there are %d nodes", offsets, nodes)
	}
	s.schema.NodeTypes = make([]ingest.NodeType, n)
	ids := map[string]int64{}
	for name, id := range t.nodeTypes {
		if id < 0 || id >= n || s.schema.NodeTypes[id].Name != "" {
			return fmt.Errorf("node type %q has number %d of %d", name, id, n)
		}
		s.schema.NodeTypes[id] = ingest.NodeType{Name: name, Count: offsets[id+1] - offsets[id]}
		ids[name] = id
	}
	for _, name := range slices.Sorted(maps.Keys(t.relations)) {
		r, err := s.parseRelation(name)
		if err != nil {
			return err
		}
		r.Edges = -1
		src, dst := ids[r.Src], ids[r.Dst]
		s.schema.Relations = append(s.schema.Relations, r)
		s.relations = append(s.relations, relation{path: path, csc: &csc{
			path, s.memory, t.relations[name], [2]int64{offsets[src], offsets[src+1]}, [2]int64{offsets[dst], offsets[dst+1]},
		}})
	}
	return nil
}

// each streams the edges of one type, by destination.
func (c *csc) each(ctx context.Context, flush func(src, dst []int64) error) error {
	t, err := openTopology(c.path, c.memory)
	if err != nil {
		return err
	}
	defer t.file.Close()
	v := &view{file: t.file}
	indptr, indices := &stream{t.indptr.Reader(), c.path, v}, &stream{t.indices.Reader(), c.path, v}
	var types *stream
	if c.typ >= 0 {
		if t.edgeTypes == nil {
			return fmt.Errorf("%s: it changed while it was read", c.path)
		}
		types = &stream{t.edgeTypes.Reader(), c.path, v}
	}
	nodes, edges := t.indptr.Len()-1, t.indices.Len()
	ends := make([]int64, min(nodes+1, ingest.ChunkRows))
	from, typ := make([]int64, ingest.ChunkRows), make([]int64, ingest.ChunkRows)
	src, dst := make([]int64, 0, ingest.ChunkRows), make([]int64, 0, ingest.ChunkRows)
	done, end := int64(0), int64(0) // edges read; edges of the nodes so far
	for node := int64(-1); node < nodes; {
		ends := ends[:min(int64(len(ends)), nodes-node)]
		if err := indptr.int64s(ends); err != nil {
			return err
		}
		for _, e := range ends {
			if e < end || e > edges || node < 0 && e != 0 {
				return fmt.Errorf("%s: indptr has %d behind %d at node %d, and there are %d edges", c.path, e, end,
					node, edges)
			}
			for end = e; done < end; {
				n := min(end-done, ingest.ChunkRows)
				if err := indices.int64s(from[:n]); err != nil {
					return err
				}
				if types != nil {
					if err := types.int64s(typ[:n]); err != nil {
						return err
					}
				}
				for i, u := range from[:n] {
					if types != nil && typ[i] != c.typ {
						continue
					}
					if u < c.src[0] || u >= c.src[1] || node < c.dst[0] || node >= c.dst[1] {
						return fmt.Errorf("%s: edge %d (counting from 0) joins nodes %d and %d, which are not of its types",
							c.path, done+int64(i), u, node)
					}
					if src, dst = append(src, u-c.src[0]), append(dst, node-c.dst[0]); len(src) == ingest.ChunkRows {
						if err := flush(src, dst); err != nil {
							return err
						}
						src, dst = src[:0], dst[:0]
					}
				}
				done += n
			}
			node++
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	if done != edges {
		return fmt.Errorf("%s: indptr ends at %d of %d edges", c.path, done, edges)
	}
	if len(src) == 0 {
		return nil
	}
	return flush(src, dst)
}
