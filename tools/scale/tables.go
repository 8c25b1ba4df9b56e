//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/parquet-go/parquet-go"
)

type tableNode struct {
	ID    string  `parquet:"id"`
	Size  float32 `parquet:"size"`
	Kind  float32 `parquet:"kind"`
	Group int32   `parquet:"group"`
}

type tableEdge struct {
	Src string `parquet:"src"`
	Dst string `parquet:"dst"`
}

const tableSchema = `name: strings
nodes:
  - type: user
    files: nodes.parquet
    id: id
    features: [size, kind]
    label: group
edges:
  - type: user:knows:user
    files: edges.parquet
    src: src
    dst: dst
`

// userID scatters numbers over texts of 20 bytes, as accounts of different ages have them.
func userID(i uint64) string {
	return fmt.Sprintf("user-%015x", (i+1)*0x9e3779b97f4a7c15>>4)
}

// writeTables writes nodes and edges, the edges of skewed degrees.
func writeTables(ctx context.Context, dir string, nodes, edges uint64) error {
	if err := os.WriteFile(filepath.Join(dir, "schema.yaml"), []byte(tableSchema), 0o666); err != nil {
		return err
	}
	err := writeTable(ctx, filepath.Join(dir, "nodes.parquet"), nodes, func(i uint64) tableNode {
		return tableNode{userID(i), float32(i % 97), float32(i % 7), int32(i % 10)}
	})
	if err != nil {
		return err
	}
	state := uint64(1)
	next := func() uint64 {
		state = state*6364136223846793005 + 1442695040888963407
		return state >> 20
	}
	return writeTable(ctx, filepath.Join(dir, "edges.parquet"), edges, func(uint64) tableEdge {
		a, b, c := next()%nodes, next()%nodes, next()%nodes
		return tableEdge{userID(min(a, b, c)), userID(c)}
	})
}

func writeTable[T any](ctx context.Context, name string, rows uint64, row func(i uint64) T) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	w := parquet.NewGenericWriter[T](f, parquet.Compression(&parquet.Snappy), parquet.MaxRowsPerRowGroup(1<<20))
	batch := make([]T, 0, 1<<14)
	for i := range rows {
		if batch = append(batch, row(i)); len(batch) < cap(batch) && i+1 < rows {
			continue
		}
		if _, err := w.Write(batch); err != nil {
			return err
		}
		batch = batch[:0]
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return f.Close()
}
