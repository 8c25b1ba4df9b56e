package export

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/store"
)

// What metadata.yaml says, in its order.
type (
	boltMetadata struct {
		Name     string        `yaml:"dataset_name"`
		Graph    boltGraph     `yaml:"graph"`
		Features []boltFeature `yaml:"feature_data"`
		Tasks    []boltTask    `yaml:"tasks"`
	}
	boltGraph struct {
		Nodes    []boltNodes   `yaml:"nodes"`
		Edges    []boltEdges   `yaml:"edges"`
		Features []boltFeature `yaml:"feature_data,omitempty"`
	}
	boltNodes struct {
		Type string `yaml:"type,omitempty"`
		Num  int64  `yaml:"num"`
	}
	boltEdges struct {
		Type   string `yaml:"type,omitempty"`
		Format string `yaml:"format"`
		Path   string `yaml:"path"`
	}
	boltFeature struct {
		Domain   string `yaml:"domain"`
		Type     string `yaml:"type,omitempty"`
		Name     string `yaml:"name"`
		Format   string `yaml:"format"`
		InMemory bool   `yaml:"in_memory"`
		Path     string `yaml:"path"`
	}
	boltTask struct {
		Name    string    `yaml:"name"`
		Classes int64     `yaml:"num_classes,omitempty"`
		Names   []string  `yaml:"class_names,omitempty"`
		Train   []boltSet `yaml:"train_set"`
		Valid   []boltSet `yaml:"validation_set"`
		Test    []boltSet `yaml:"test_set"`
	}
	boltSet struct {
		Type string     `yaml:"type,omitempty"`
		Data []boltData `yaml:"data"`
	}
	boltData struct {
		Name   string `yaml:"name"`
		Format string `yaml:"format"`
		Path   string `yaml:"path"`
	}
)

// writeGraphBolt writes what package graphbolt reads. Files lie as in writeNPY, with the ids and
// names of nodes, which GraphBolt has no place for, beside them.
func (e *exporter) writeGraphBolt() error {
	m := e.newManifest()
	meta := boltMetadata{Name: e.m.Name, Features: []boltFeature{}, Tasks: []boltTask{}}
	homogeneous := len(e.m.NodeTypes) == 1 && len(e.m.Relations) == 1
	typed := func(name string) string {
		if homogeneous {
			return ""
		}
		return name
	}
	for i, n := range e.types {
		meta.Graph.Nodes = append(meta.Graph.Nodes, boltNodes{typed(n.typ.Name), n.count})
		if err := e.writeNodes(i, n, &m.NodeTypes[i]); err != nil {
			return err
		}
		for _, t := range e.m.Tables {
			if t.NodeType == n.typ.Name {
				meta.Features = append(meta.Features,
					boltFeature{"node", typed(t.NodeType), t.Name, "numpy", false, m.NodeTypes[i].Tables[t.Name]})
			}
		}
	}
	everywhere := map[string]int{} // columns by name: how many relations have one
	for _, r := range e.m.Relations {
		for _, c := range r.Columns {
			everywhere[c.Name]++
		}
	}
	for i, r := range e.m.Relations {
		to := &m.Relations[i]
		if err := e.writeEdges(i, r.Key(), to); err != nil {
			return err
		}
		key := typed(r.Src + ":" + r.Name + ":" + r.Dst)
		meta.Graph.Edges = append(meta.Graph.Edges, boltEdges{key, "numpy", to.File})
		for _, c := range r.Columns {
			if c.Name == "id" {
				continue
			}
			f := boltFeature{"edge", key, c.Name, "numpy", true, to.Columns[c.Name]}
			// What samplers use must be there for all edges.
			if everywhere[c.Name] == len(e.m.Relations) {
				meta.Graph.Features = append(meta.Graph.Features, f)
			} else {
				meta.Features = append(meta.Features, f)
			}
		}
		for _, t := range e.m.Tables {
			if t.Relation == r.Key() {
				meta.Features = append(meta.Features, boltFeature{"edge", key, t.Name, "numpy", false, to.Tables[t.Name]})
			}
		}
	}
	links := boltTask{Name: "link_prediction"}
	for i, r := range e.m.Relations {
		if r.EdgeSplit == nil {
			continue
		}
		sets, err := e.boltLinks(i, typed(r.Src+":"+r.Name+":"+r.Dst))
		if err != nil {
			return err
		}
		links.Train, links.Valid, links.Test = append(links.Train, sets[0]), append(links.Valid, sets[1]), append(links.Test, sets[2])
	}
	if links.Train != nil {
		meta.Tasks = append(meta.Tasks, links)
	}
	for i := range e.m.Splits {
		tasks, err := e.writeTasks(i, typed)
		if err != nil {
			return err
		}
		meta.Tasks = append(meta.Tasks, tasks...)
	}
	for _, l := range e.m.Labels {
		if !slices.ContainsFunc(e.m.Splits, func(s store.Split) bool { return s.NodeType == l.NodeType }) {
			e.skip("label %s of %s: there is no split, and GraphBolt has labels of the nodes of a task only; they are in %s",
				l.Name, l.NodeType, m.NodeTypes[e.typeIndex(l.NodeType)].Labels[l.Name].File)
		}
	}
	b, err := yaml.Dump(&meta)
	if err != nil {
		return err
	}
	if err := e.writeFile("metadata.yaml", func(f *file) error { return f.write(b) }); err != nil {
		return err
	}
	return e.writeManifest(m)
}

// writeTasks makes a task of a split: one for each label of its nodes, or one without.
func (e *exporter) writeTasks(split int, typed func(string) string) ([]boltTask, error) {
	s := &e.m.Splits[split]
	n := e.typeOf(s.NodeType)
	sets := e.ds.Split(split)
	parts := [][]uint32{sets.Train, sets.Valid, sets.Test}
	seeds, err := e.writeSplit(split)
	if err != nil {
		return nil, err
	}
	task := func(name string, label int) (boltTask, error) {
		t := boltTask{Name: name}
		for part, to := range []*[]boltSet{&t.Train, &t.Valid, &t.Test} {
			set := boltSet{typed(s.NodeType), []boltData{{"seeds", "numpy", seeds[part]}}}
			if label >= 0 {
				l := e.ds.Labels(label)
				t.Classes, t.Names = int64(l.Classes()), l.Label.ClassNames
				path := fmt.Sprintf("split/%s-%v-%s.npy", s.Name, ingest.Part(part), l.Label.Name)
				if err := e.writePart(path, n, parts[part], l); err != nil {
					return t, err
				}
				set.Data = append(set.Data, boltData{"labels", "numpy", path})
			}
			*to = []boltSet{set}
		}
		return t, nil
	}
	var tasks []boltTask
	for k, l := range e.m.Labels {
		if l.NodeType != s.NodeType {
			continue
		}
		name := s.Name
		if len(tasks) > 0 {
			name = l.Name
		}
		t, err := task(name, k)
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, t)
	}
	if len(tasks) > 0 {
		return tasks, nil
	}
	t, err := task(s.Name, -1)
	return []boltTask{t}, err
}
