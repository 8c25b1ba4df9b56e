package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/store"
)

// nodeID is a line that inspect --ids prints; its JSON keys are stable. ID is a number or a text.
type nodeID struct {
	Stored store.NodeID `json:"stored"`
	ID     any          `json:"id"`
}

// printIDs writes a line for each node of a type, in stored order: its stored number and the user's
// id. Lines are JSON, which keeps every character of a text. Programs that map a dataset get the
// texts of ids by it.
func printIDs(ctx context.Context, stdout, stderr io.Writer, path, nodeType string) error {
	ds, err := openDataset(stderr, path, 0)
	if err != nil {
		return err
	}
	defer ds.Close()
	types := ds.Manifest().NodeTypes
	i := slices.IndexFunc(types, func(t store.NodeType) bool { return t.Name == nodeType })
	if i < 0 {
		names := make([]string, len(types))
		for k, t := range types {
			names[k] = t.Name
		}
		return misuse(fmt.Errorf("--ids %s: no such node type; there are %s", nodeType, strings.Join(names, ", ")))
	}
	out := bufio.NewWriter(stdout)
	write := func(v store.NodeID, id any) error { return writeJSON(out, nodeID{v, id}, "") }
	err = store.Guard(func() error {
		ids := ds.IDs(i)
		if ids.HasNames() {
			return ids.EachName(ctx, func(v store.NodeID, name []byte) error { return write(v, string(name)) })
		}
		for v := range store.NodeID(types[i].Count) {
			if err := cmp.Or(ctx.Err(), write(v, ids.Original(v))); err != nil {
				return err
			}
		}
		return nil
	})
	return cmp.Or(err, out.Flush())
}
