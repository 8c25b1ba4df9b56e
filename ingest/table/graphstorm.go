package table

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/ingest/lines"
)

// stormConfig is the configuration of GraphStorm's graph construction:
// https://graphstorm.readthedocs.io/en/latest/cli/graph-construction/single-machine-gconstruct.html
type stormConfig struct {
	Version string       `json:"version"`
	Nodes   []stormEntry `json:"nodes"`
	Edges   []stormEntry `json:"edges"`
}

// stormEntry is one of its nodes or edges.
type stormEntry struct {
	NodeType string      `json:"node_type"`
	NodeID   string      `json:"node_id_col"`
	Relation []string    `json:"relation"`
	Source   string      `json:"source_id_col"`
	Dest     string      `json:"dest_id_col"`
	Files    stormWords  `json:"files"`
	Format   stormFormat `json:"format"`
	Features []struct {
		Columns   stormWords `json:"feature_col"`
		Transform struct {
			Name string `json:"name"`
		} `json:"transform"`
	} `json:"features"`
	Labels []struct {
		Column string `json:"label_col"`
		Task   string `json:"task_type"`
	} `json:"labels"`
}

type stormFormat struct {
	Name      string `json:"name"`
	Separator string `json:"separator"`
}

// stormWords is a text or a list of them.
type stormWords []string

func (w *stormWords) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*w = stormWords{one}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(w))
}

const maxStormFiles = 64 // of JSON in a folder that are looked at

// stormSchema writes the schema of a folder that has a configuration of GraphStorm; nil where it
// has none.
func stormSchema(dir string) ([]byte, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, nil // the folder's name is no pattern
	}
	for _, path := range paths[:min(len(paths), maxStormFiles)] {
		info, err := os.Stat(path)
		if err != nil || info.Size() > maxSchema {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(text, []byte(`"relation"`)) || !bytes.Contains(text, []byte(`"source_id_col"`)) {
			continue
		}
		var c stormConfig
		if err := json.Unmarshal(text, &c); err != nil {
			return nil, fmt.Errorf("%s: a configuration of GraphStorm, which cannot be read: %s", path, lines.ClipText(err.Error()))
		}
		return c.yaml(dir, path)
	}
	return nil, nil
}

// GraphStorm reports whether a folder has a configuration of GraphStorm.
func GraphStorm(dir string) bool {
	made, err := stormSchema(dir)
	return made != nil || err != nil
}

func (c *stormConfig) yaml(dir, path string) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# From %s, of GraphStorm. Read it, and correct it.\nname: %s\n", plain(filepath.Base(path)), quote(cleanName(filepath.Base(dir))))
	var err error
	fail := func(format string, args ...any) {
		if err == nil {
			err = fmt.Errorf("%s: a configuration of GraphStorm: %w", path, fmt.Errorf(format, args...))
		}
	}
	if len(c.Nodes) > 0 {
		b.WriteString("nodes:\n")
	}
	declared := map[string]bool{}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		if declared[n.NodeType] {
			fail("node type %s is there twice; write its files and features into one entry", lines.ClipText(n.NodeType))
		}
		declared[n.NodeType] = true
		fmt.Fprintf(&b, "  - type: %s\n", quote(cleanName(n.NodeType)))
		n.write(&b, dir, fail)
		if n.NodeID == "" {
			fail("node type %s has no node_id_col", lines.ClipText(n.NodeType))
		}
		fmt.Fprintf(&b, "    id: %s\n", quote(n.NodeID))
		n.writeFeatures(&b)
		for k, l := range n.Labels {
			key := "label"
			if l.Task == "regression" {
				key = "value"
			}
			note := ""
			if k > 0 {
				note = "# "
			}
			fmt.Fprintf(&b, "    %s%s: %s # task %s; the split is made at ingest\n", note, key, quote(l.Column), plain(l.Task))
		}
	}
	for _, e := range c.Edges {
		for _, end := range []int{0, 2} {
			if len(e.Relation) == 3 && len(c.Nodes) > 0 && !declared[e.Relation[end]] {
				declared[e.Relation[end]] = true
				fmt.Fprintf(&b, "  - type: %s # no table lists them: they are what edges name\n", quote(cleanName(e.Relation[end])))
			}
		}
	}
	b.WriteString("edges:\n")
	for i := range c.Edges {
		e := &c.Edges[i]
		if len(e.Relation) != 3 {
			fail("relation %q: it has three names, of source, relation and destination", e.Relation)
			break
		}
		fmt.Fprintf(&b, "  - type: %q\n", cleanName(e.Relation[0])+":"+cleanName(e.Relation[1])+":"+cleanName(e.Relation[2]))
		e.write(&b, dir, fail)
		fmt.Fprintf(&b, "    src: %s\n    dst: %s\n", quote(cmp.Or(e.Source, "src")), quote(cmp.Or(e.Dest, "dst")))
		e.writeFeatures(&b)
		for _, l := range e.Labels {
			if l.Column != "" {
				fmt.Fprintf(&b, "    # not used: label %s of edges; columns keeps it, as in [{name: y, column: %s, type: i64}]\n", plain(l.Column), plain(quote(l.Column)))
			}
		}
	}
	if len(c.Edges) == 0 {
		fail("it has no edges")
	}
	return b.Bytes(), err
}

// write writes the files of an entry, as paths from the folder of the configuration.
func (e *stormEntry) write(b *bytes.Buffer, dir string, fail func(format string, args ...any)) {
	var files []string
	for _, f := range e.Files {
		files = append(files, stormPath(dir, f))
	}
	if len(files) == 0 {
		fail("an entry has no files")
	}
	fmt.Fprintf(b, "    files: %s\n", quotes(files))
	switch name := strings.ToLower(e.Format.Name); name {
	case "csv", "parquet", "":
		if name != "" {
			fmt.Fprintf(b, "    format: %s\n", name)
		}
	case "json":
		b.WriteString("    format: jsonl # an object a line\n")
	default:
		fail("format %q is not read; write the tables as Parquet", lines.ClipText(e.Format.Name))
	}
	if s := e.Format.Separator; s != "" && s != "," {
		fmt.Fprintf(b, "    delimiter: %q\n", s)
	}
}

// stormPath is where a file is: as it is written, or, where that is not there, in the folder.
func stormPath(dir, file string) string {
	if filepath.IsLocal(file) {
		if found, err := filepath.Glob(filepath.Join(dir, file)); err == nil && len(found) > 0 {
			return filepath.ToSlash(file)
		}
	}
	for from := filepath.ToSlash(file); from != ""; { // the folder may have been moved
		_, rest, ok := strings.Cut(from, "/")
		if !ok {
			break
		}
		if found, err := filepath.Glob(filepath.Join(dir, rest)); err == nil && len(found) > 0 && fs.ValidPath(rest) {
			return rest
		}
		from = rest
	}
	return file
}

func (e *stormEntry) writeFeatures(b *bytes.Buffer) {
	var features, categories, texts []string
	for _, f := range e.Features {
		for _, c := range f.Columns {
			if slices.Contains(features, c) {
				continue
			}
			if name := f.Transform.Name; strings.HasPrefix(name, "tokenize") || strings.HasPrefix(name, "bert") {
				texts = append(texts, c) // for a language model
				continue
			}
			features = append(features, c)
			if f.Transform.Name == "to_categorical" {
				categories = append(categories, c)
			}
		}
	}
	if len(features) > 0 {
		fmt.Fprintf(b, "    features: %s\n", quotes(features))
	}
	if len(texts) > 0 {
		fmt.Fprintf(b, "    # not used: %s (text)\n", plain(strings.Join(texts, ", ")))
	}
	if len(categories) > 0 {
		fmt.Fprintf(b, "    categorical: %s\n", quotes(categories))
	}
}
