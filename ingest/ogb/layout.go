package ogb

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/csvgz"
)

const maxColumns = 1 << 22 // 16 MiB a row

// refuseOthers recognises what people pass instead of such a folder.
func refuseOthers(dir string) error {
	stat, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if !stat.IsDir() {
		if strings.EqualFold(filepath.Ext(dir), ".zip") {
			return fmt.Errorf("%s: a zip archive; unpack it first and name the folder inside", dir)
		}
		return fmt.Errorf("%s: not a folder; name the one that holds raw/ and split/", dir)
	}
	raw := filepath.Join(dir, "raw")
	for _, layout := range []struct{ file, refusal string }{
		{"data.npz", "the binary OGB layout is not read yet, only raw/edge.csv.gz and its like"},
		{"triplet-type-list.csv.gz", "heterogeneous OGB datasets are not read yet, only those with one type of node"},
	} {
		if _, err := os.Stat(filepath.Join(raw, layout.file)); err == nil {
			return fmt.Errorf("%s: %s", filepath.Join(raw, layout.file), layout.refusal)
		}
	}
	if _, err := os.Stat(filepath.Join(raw, "edge.csv.gz")); errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s: no raw/edge.csv.gz in it; name the folder that an OGB download unpacks to", dir)
	} else if err != nil {
		return err
	}
	return nil
}

func (s *Source) raw(file string) string { return filepath.Join(s.dir, "raw", file) }

// readCount reads a file that has a number for each graph, and one graph.
func readCount(path string) (int64, error) {
	t, err := csvgz.Open(path)
	if err != nil {
		return 0, err
	}
	defer t.Close()
	var n, more [1]int64
	if err := t.Ints(n[:]); err == io.EOF {
		return 0, fmt.Errorf("%s: there is no number in it; fetch it again", path)
	} else if err != nil {
		return 0, err
	}
	if n[0] < 0 {
		return 0, t.Errorf("%d is not a count", n[0])
	}
	if err := t.Ints(more[:]); err == nil {
		return 0, t.Errorf("a second graph; node-property datasets have one")
	} else if err != io.EOF {
		return 0, err
	}
	return n[0], nil
}

// findTables lays down features and labels, and lists the files that are passed over.
func (s *Source) findTables(info Info) error {
	files, err := os.ReadDir(filepath.Join(s.dir, "raw"))
	if err != nil {
		return err
	}
	for _, f := range files {
		switch name := f.Name(); name {
		case "edge.csv.gz", "num-node-list.csv.gz", "num-edge-list.csv.gz":
		case "node-feat.csv.gz":
			dim, err := columns(s.raw(name))
			if err != nil {
				return err
			}
			if dim > maxColumns {
				return fmt.Errorf("%s: line 1: %d columns; feature rows have at most %d", s.raw(name), dim, maxColumns)
			}
			if dim > 0 || s.nodes > 0 {
				s.schema.Tables = []ingest.Table{{Name: "feat", NodeType: "node", Dim: max(dim, 1)}}
			}
		case "node-label.csv.gz":
			if s.tasks, err = columns(s.raw(name)); err != nil {
				return err
			}
			label := ingest.Label{Name: "label", NodeType: "node"}
			if s.tasks = max(s.tasks, 1); s.tasks > 1 {
				label.Multi, label.Classes = true, s.tasks
			} else if info.Tasks == 1 {
				label.Classes = info.Classes
			}
			s.schema.Labels = []ingest.Label{label}
		default:
			why := "it is no part of this layout"
			switch {
			case strings.HasPrefix(name, "node_") || name == "species.csv.gz":
				why = "further columns of nodes are not kept"
			case strings.HasPrefix(name, "edge_"):
				why = "further columns of edges are not kept"
			case name == "edge-feat.csv.gz":
				why = "features of edges are not kept"
			}
			s.schema.Skipped = append(s.schema.Skipped, "raw/"+name+": "+why)
		}
	}
	return nil
}

// columns counts the cells of the first line: 0 in a table without lines.
func columns(path string) (int, error) {
	t, err := csvgz.Open(path)
	if err != nil {
		return 0, err
	}
	defer t.Close()
	return t.Columns()
}

// findSplit takes the known scheme, or else the only one.
func (s *Source) findSplit(info Info) error {
	entries, err := os.ReadDir(filepath.Join(s.dir, "split"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var schemes []string
	for _, e := range entries {
		if stat, err := os.Stat(filepath.Join(s.dir, "split", e.Name())); err == nil && stat.IsDir() {
			schemes = append(schemes, e.Name())
		}
	}
	var scheme string
	switch {
	case len(schemes) == 0:
		return nil
	case slices.Contains(schemes, info.Split):
		scheme = info.Split
	case len(schemes) == 1:
		scheme = schemes[0]
	default:
		return fmt.Errorf("%s: several schemes (%s), and none that is known for %s; leave one folder there",
			filepath.Join(s.dir, "split"), strings.Join(schemes, ", "), s.schema.Name)
	}
	folder := filepath.Join(s.dir, "split", scheme)
	_, pickled := os.Stat(filepath.Join(folder, "split_dict.pt"))
	for part := ingest.Train; part <= ingest.Test; part++ {
		file := filepath.Join(folder, part.String()+".csv.gz")
		if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
			if pickled == nil {
				return fmt.Errorf("%s: a split in a Python pickle is not read yet; put train.csv.gz, valid.csv.gz and test.csv.gz beside it, a node a line",
					filepath.Join(folder, "split_dict.pt"))
			}
			return fmt.Errorf("%s: no such file; a split has train.csv.gz, valid.csv.gz and test.csv.gz", file)
		} else if err != nil {
			return err
		}
	}
	if pickled == nil {
		s.schema.Skipped = append(s.schema.Skipped, "split/"+scheme+"/split_dict.pt: the csv.gz files beside it are read instead")
	}
	for _, other := range schemes {
		if other != scheme {
			s.schema.Skipped = append(s.schema.Skipped, "split/"+other+": "+scheme+" is the split of this dataset")
		}
	}
	s.schema.Splits = []ingest.Split{{Name: scheme, NodeType: "node"}}
	return nil
}
