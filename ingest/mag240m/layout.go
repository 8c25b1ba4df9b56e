package mag240m

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/ogb"
)

// The node types by number.
const (
	paper = iota
	author
	institution
)

var typeNames = [...]string{paper: "paper", author: "author", institution: "institution"}

// relations are the relations of the download: source, name, destination.
var relations = [...][3]string{
	{"author", "writes", "paper"},
	{"author", "affiliated_with", "institution"},
	{"paper", "cites", "paper"},
}

const (
	folder   = "mag240m_kddcup2021"
	maxCount = 1 << 48 // more nodes than any graph has
)

// findFolder accepts the folder itself and the one that OGB's package was told to download into.
func findFolder(path string) (string, error) {
	stat, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !stat.IsDir() {
		return "", fmt.Errorf("%s: not a folder; name %s, unpacked", path, folder)
	}
	for _, dir := range []string{path, filepath.Join(path, folder)} {
		if _, err := os.Stat(filepath.Join(dir, "meta.pt")); err == nil {
			return dir, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return "", fmt.Errorf("%s: no meta.pt in it, nor in a folder %s there; name the folder that OGB's package fills", path, folder)
}

func (s *Source) at(name string) string { return filepath.Join(s.dir, filepath.FromSlash(name)) }

// uses remembers a file for the schema's Identity.
func (s *Source) uses(name string) string {
	path := s.at(name)
	s.files = append(s.files, path)
	return path
}

func (s *Source) note(what, why string) {
	s.schema.Skipped = append(s.schema.Skipped, what+": "+why)
}

// readMeta counts nodes and classes.
func (s *Source) readMeta() error {
	meta, err := ogb.OpenDict(s.uses("meta.pt"), s.memory)
	if err != nil {
		return err
	}
	defer meta.Close()
	for _, name := range typeNames {
		n, err := meta.Int(name)
		if err != nil {
			return err
		}
		if n < 0 || n > maxCount {
			return fmt.Errorf("%s: %s: %d is not a count", s.at("meta.pt"), name, n)
		}
		s.schema.NodeTypes = append(s.schema.NodeTypes, ingest.NodeType{Name: name, Count: n})
	}
	if s.classes, err = meta.Int("num_classes"); err != nil {
		return err
	}
	if s.classes < 0 || s.classes > 1<<31-1 {
		return fmt.Errorf("%s: num_classes: %d is not a count", s.at("meta.pt"), s.classes)
	}
	return nil
}

func (s *Source) findRelations() error {
	for _, r := range relations {
		a, err := mustArray(s.uses("processed/" + strings.Join(r[:], "___") + "/edge_index.npy"))
		if err != nil {
			return err
		}
		if len(a.header.Shape) != 2 || a.header.Shape[0] != 2 {
			return fmt.Errorf("%s: array is %s, where a row of sources and a row of destinations are expected", a.path, a.header.String())
		}
		s.ends = append(s.ends, a)
		s.schema.Relations = append(s.schema.Relations, ingest.Relation{Src: r[0], Name: r[1], Dst: r[2], Edges: a.header.Shape[1]})
	}
	return nil
}

func (s *Source) findLabels() error {
	a, err := mustArray(s.uses("processed/paper/node_label.npy"))
	if err != nil {
		return err
	}
	s.labels = a
	s.schema.Labels = []ingest.Label{{Name: "label", NodeType: "paper", Classes: int(s.classes)}}
	return a.rows(s.schema.NodeTypes[paper].Count, 1, s.at("meta.pt"))
}

// noteOthers names what the folder holds beyond what is read.
func (s *Source) noteOthers() error {
	for _, dir := range []string{"", "processed", "processed/paper", "processed/author", "processed/institution"} {
		entries, err := os.ReadDir(s.at(dir))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		for _, e := range entries {
			name := strings.TrimPrefix(dir+"/"+e.Name(), "/")
			switch {
			case slices.Contains(s.files, s.at(name)) || strings.HasPrefix(name, "RELEASE_v") || name == "processed":
			case dir == "processed" && slices.Contains(typeNames[:], e.Name()):
			case dir == "processed" && slices.Contains(relationNames(), e.Name()):
			case name == "processed/paper/node_feat.npy":
				s.note(name, "the full features take its place")
			case name == "processed/paper/node_year.npy":
				s.note(name, "further columns of nodes are not kept")
			case name == "full_feat.npy" || name == "full.npy":
				s.note(name, "it is read when {full_features} names it")
			default:
				s.note(name, "it is no part of this layout")
			}
		}
	}
	return nil
}

func relationNames() []string {
	var names []string
	for _, r := range relations {
		names = append(names, strings.Join(r[:], "___"))
	}
	return names
}
