package build_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/build"
)

// grid is a Source of its own: the cells of a square, each with edges to the cell on its right and
// to the cell below. The feature of a cell is its column, and its class tells the upper half from
// the lower half. ingest.Plain has the methods that such a source does not need.
type grid struct {
	ingest.Plain
	side int64
}

func (g grid) Schema(context.Context) (*ingest.Schema, error) {
	return &ingest.Schema{
		Name:      "grid",
		NodeTypes: []ingest.NodeType{{Name: "cell", Count: g.side * g.side}},
		Relations: []ingest.Relation{{Src: "cell", Name: "beside", Dst: "cell", Edges: 2 * g.side * (g.side - 1)}},
		Tables:    []ingest.Table{{Name: "feat", NodeType: "cell", Dim: 1}},
		Labels:    []ingest.Label{{Name: "half", NodeType: "cell", Classes: 2, ClassNames: []string{"upper", "lower"}}},
		Splits:    []ingest.Split{{Name: "own", NodeType: "cell"}},
		Identity:  fmt.Sprintf("grid of side %d", g.side), // a killed ingest goes on only with the same
	}, nil
}

func (g grid) Edges(ctx context.Context, _ int, emit func(ingest.EdgeChunk) error) error {
	first := int64(0)
	for cell := range g.side * g.side { // a chunk for each cell, which suffices for a small graph
		chunk := ingest.EdgeChunk{Place: ingest.Place{File: "grid", First: first}}
		if cell%g.side < g.side-1 {
			chunk.Src, chunk.Dst = append(chunk.Src, cell), append(chunk.Dst, cell+1)
		}
		if cell < g.side*(g.side-1) {
			chunk.Src, chunk.Dst = append(chunk.Src, cell), append(chunk.Dst, cell+g.side)
		}
		if chunk.Len() == 0 {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := emit(chunk); err != nil {
			return err
		}
		first += int64(chunk.Len())
	}
	return nil
}

func (g grid) Rows(_ context.Context, _ int, emit func(ingest.RowChunk) error) error {
	columns := make([]float32, g.side*g.side)
	for cell := range columns {
		columns[cell] = float32(int64(cell) % g.side)
	}
	return emit(ingest.RowChunk{Place: ingest.Place{File: "grid"}, Values: columns})
}

func (g grid) Labels(_ context.Context, _ int, emit func(ingest.LabelChunk) error) error {
	classes := make([]int32, g.side*g.side)
	for cell := range classes {
		classes[cell] = int32(2 * int64(cell) / (g.side * g.side))
	}
	return emit(ingest.LabelChunk{Place: ingest.Place{File: "grid"}, Values: classes})
}

// Split puts every tenth cell into each of validation and test.
func (g grid) Split(_ context.Context, _ int, part ingest.Part, emit func(ingest.IDChunk) error) error {
	chunk := ingest.IDChunk{Place: ingest.Place{File: "grid"}}
	for cell := range g.side * g.side {
		at := ingest.Train
		switch cell % 10 {
		case 0:
			at = ingest.Valid
		case 1:
			at = ingest.Test
		}
		if at == part {
			chunk.IDs = append(chunk.IDs, cell)
		}
	}
	return emit(chunk)
}

// A graph that is in no file becomes a dataset by a Source of its own.
func ExampleBuild_source() {
	dir, err := os.MkdirTemp("", "ingest")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	report, err := build.Build(context.Background(), grid{side: 20}, filepath.Join(dir, "grid.gnn"), build.Options{Undirected: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	r, s := report.Relations[0], report.Splits[0]
	fmt.Printf("%d edges with %d reverses\n", r.Edges, r.ReverseAdded)
	fmt.Printf("%d train, %d valid, %d test\n", s.Train, s.Valid, s.Test)
	// Output:
	// 1520 edges with 760 reverses
	// 320 train, 40 valid, 40 test
}
