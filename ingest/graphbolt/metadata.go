package graphbolt

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/gnnstore/gnnstore/store"
)

// maxMetadata bounds metadata.yaml, which has some lines for each type, feature and task.
const maxMetadata = 4 << 20

// metadata has the keys of metadata.yaml that are used here. Upstream keeps unknown keys as notes
// of a feature or a task, so they are no mistake.
type metadata struct {
	Name     string    `yaml:"dataset_name"`
	Graph    *graph    `yaml:"graph"`
	Topology *topology `yaml:"graph_topology"` // of preprocessed/metadata.yaml, where graph is gone
	Features []feature `yaml:"feature_data"`
	Tasks    []task    `yaml:"tasks"`
}

type graph struct {
	Nodes []struct {
		Type string `yaml:"type"`
		Num  *int64 `yaml:"num"`
	} `yaml:"nodes"`
	Edges []struct {
		Type string `yaml:"type"`
		file `yaml:",inline"`
	} `yaml:"edges"`
	Features []feature `yaml:"feature_data"`
}

type topology struct {
	Type string `yaml:"type"`
	Path string `yaml:"path"`
}

type file struct {
	Format string `yaml:"format"`
	Path   string `yaml:"path"`
}

type feature struct {
	Domain string `yaml:"domain"`
	Type   string `yaml:"type"`
	Name   string `yaml:"name"`
	file   `yaml:",inline"`
}

type task struct {
	Name    string `yaml:"name"`
	Classes int64  `yaml:"num_classes"`
	Train   []set  `yaml:"train_set"`
	Valid   []set  `yaml:"validation_set"`
	Test    []set  `yaml:"test_set"`
}

// set is the part of a training, validation or test set that has one type.
type set struct {
	Type string     `yaml:"type"`
	Data []dataFile `yaml:"data"`
}

type dataFile struct {
	Name string `yaml:"name"`
	file `yaml:",inline"`
}

func readMetadata(path string) (*metadata, error) {
	f, err := store.OpenFile(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxMetadata+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(text) > maxMetadata {
		return nil, fmt.Errorf("%s: longer than %d bytes; is this GraphBolt's metadata?", path, maxMetadata)
	}
	m := new(metadata)
	if err := yaml.Load(text, m); err != nil {
		return nil, fmt.Errorf("%s: %s", path, strings.Join(strings.Fields(err.Error()), " "))
	}
	return m, nil
}

// find returns the metadata to read, the folder that its paths start in, and its path: of the files
// as they were given where these are there, else of what GraphBolt made of them.
func find(path string) (m *metadata, dir, from string, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, "", "", err
	}
	if !info.IsDir() {
		if base := filepath.Base(path); base != "metadata.yaml" {
			why := "name the folder that has metadata.yaml"
			if strings.EqualFold(filepath.Ext(path), ".zip") {
				why = "a zip archive; unpack it first and name the folder inside"
			}
			return nil, "", "", fmt.Errorf("%s: %s", path, why)
		}
		path = filepath.Dir(path)
	}
	if abs, err := filepath.Abs(path); err == nil && filepath.Base(abs) == "preprocessed" {
		if _, err := os.Stat(filepath.Join(path, "metadata.yaml")); err == nil {
			path = filepath.Dir(abs) // its paths start one up
		}
	}
	given, made := filepath.Join(path, "metadata.yaml"), filepath.Join(path, "preprocessed", "metadata.yaml")
	_, missing := os.Stat(made)
	m, err = readMetadata(given)
	switch {
	case err == nil && (missing != nil || m.Graph != nil && m.filesExist(path)):
		return m, path, given, nil
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return nil, "", "", err
	case missing != nil:
		return nil, "", "", fmt.Errorf("%s: no metadata.yaml in it; name the folder of a GraphBolt dataset", path)
	}
	m, err = readMetadata(made)
	return m, path, made, err
}

// filesExist reports whether the original files of the edges are still there.
func (m *metadata) filesExist(dir string) bool {
	for _, e := range m.Graph.Edges {
		if info, err := os.Stat(filepath.Join(dir, e.Path)); err != nil || !info.Mode().IsRegular() {
			return false
		}
	}
	return true
}
