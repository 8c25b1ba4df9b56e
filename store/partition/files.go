package partition

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/store"
)

// filesOf returns the file of each node type, empty for a type without nodes. By has one file where
// there is one type, and else TYPE=FILE for each.
func (w *writer) filesOf() ([]string, error) {
	files := make([]string, len(w.m.NodeTypes))
	for _, given := range w.By {
		t, file := 0, given
		if name, path, ok := strings.Cut(given, "="); ok && w.typeOf(name) >= 0 {
			t, file = w.typeOf(name), path
		} else if len(files) != 1 {
			return nil, fmt.Errorf("{by} %s: %s has %d node types; give {by} TYPE=FILE for each, with TYPE one of %s",
				given, w.ds.Path(), len(files), w.typeNames())
		}
		switch {
		case file == "":
			return nil, fmt.Errorf("{by} %s: the file has no name; write {by} TYPE=FILE", given)
		case files[t] != "":
			return nil, fmt.Errorf("{by} %s: there is {by} %s for the same nodes; leave one", given, files[t])
		}
		files[t] = file
	}
	for t, file := range files {
		if kind := &w.m.NodeTypes[t]; file == "" && kind.Count > 0 {
			return nil, fmt.Errorf("{by}: no file for the %d nodes of type %s; give {by} %s=FILE as well",
				kind.Count, kind.Name, kind.Name)
		}
	}
	return files, nil
}

func (w *writer) typeNames() string {
	var names []string
	for i := range w.m.NodeTypes {
		names = append(names, w.m.NodeTypes[i].Name)
	}
	return strings.Join(names, ", ")
}

// fromFiles returns the part of each node, by type, as files have it.
func (w *writer) fromFiles(files []string) ([][]uint16, error) {
	parts := make([][]uint16, len(files))
	for t, file := range files {
		if file == "" {
			continue
		}
		var err error
		if parts[t], err = w.fromFile(t, file); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// fromFile returns the part of each node of type t. Line k of the file has the part of the node
// with the kth smallest original id.
func (w *writer) fromFile(t int, path string) ([]uint16, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("{by} %w", err)
	}
	defer f.Close()
	nodes, ids := w.m.NodeTypes[t].Count, w.ds.IDs(t)
	part, lines := make([]uint16, nodes), bufio.NewReaderSize(f, 1<<16)
	for k := int64(0); ; k++ {
		line, err := lines.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			return nil, fmt.Errorf("%s:%d: a line of more than 64 KiB; each line is the number of a part", path, k+1)
		case err != nil && !errors.Is(err, io.EOF):
			return nil, err
		case err != nil && len(line) == 0 && k < nodes:
			return nil, fmt.Errorf("%s: %d lines for the %d nodes of type %s; "+
				"give each node a line, in the order of their ids", path, k, nodes, w.m.NodeTypes[t].Name)
		case err != nil && len(line) == 0:
			return part, nil
		case k == nodes:
			return nil, fmt.Errorf("%s:%d: more lines than the %d nodes of type %s; give each node one line", path, k+1, nodes, w.m.NodeTypes[t].Name)
		}
		text := strings.TrimSpace(string(line))
		q, err := strconv.ParseUint(text, 10, 64)
		if errors.Is(err, strconv.ErrRange) || err == nil && q >= uint64(w.Parts) || err != nil && isNumber(text) {
			return nil, fmt.Errorf("%s:%d: part %.40s; with {parts} %d they are 0 to %d", path, k+1, text, w.Parts, w.Parts-1)
		} else if err != nil {
			return nil, fmt.Errorf("%s:%d: %.40q is not the number of a part; write a number from 0 to %d",
				path, k+1, text, w.Parts-1)
		}
		part[ids.Nth(int(k))] = uint16(q)
		if k%every == 0 {
			if err := w.progress("read parts", k, nodes, "nodes"); err != nil {
				return nil, err
			}
		}
	}
}

// isNumber reports whether text is a number, perhaps a negative one.
func isNumber(text string) bool {
	_, err := strconv.ParseInt(text, 10, 64)
	return err == nil
}

// checkParts refuses parts without a node.
func checkParts(parts [][]uint16, n int, by string) error {
	counts := make([]int64, n)
	for _, of := range parts {
		for _, q := range of {
			counts[q]++
		}
	}
	for q, count := range counts {
		if count == 0 {
			return fmt.Errorf("{by} %s: part %d of %d has no node; give fewer {parts}, or {by} %s", by, q, n, store.ByRule)
		}
	}
	return nil
}
