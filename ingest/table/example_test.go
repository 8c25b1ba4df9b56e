package table_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gnnstore/gnnstore/ingest/build"
	"github.com/gnnstore/gnnstore/ingest/table"
)

// Users buy items: two tables of nodes, one of edges, and a schema that says so.
func Example() {
	dir, err := os.MkdirTemp("", "shop")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	for name, text := range map[string]string{
		"users.csv": "user_id,age,segment,part\n10,31,gold,train\n20,45,silver,valid\n30,27,gold,test\n",
		"items.csv": "sku,price,vector\n7,9.5,1;0\n8,3.25,0;1\n",
		"buys.csv":  "user,item\n10,7\n10,8\n30,8\n",
		"shop.yaml": `
nodes:
  - {type: user, files: users.csv, id: user_id, features: [age], label: segment, split: part}
  - {type: item, files: items.csv, id: sku, features: [price, vector]}
edges:
  - {type: user:buys:item, files: buys.csv, src: user, dst: item}
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			panic(err)
		}
	}
	source, err := table.Open(filepath.Join(dir, "shop.yaml"), table.Options{})
	if err != nil {
		panic(err)
	}
	defer source.Close()
	report, err := build.Build(context.Background(), source, filepath.Join(dir, "shop.gnn"), build.Options{})
	if err != nil {
		panic(err)
	}
	for _, t := range report.NodeTypes {
		fmt.Println(t.Count, "nodes of type", t.Name)
	}
	for _, r := range report.Relations {
		fmt.Println(r.Edges, "edges")
	}
	for _, l := range report.Labels {
		fmt.Println(l.Classes, "classes")
	}
	// Output:
	// 3 nodes of type user
	// 2 nodes of type item
	// 3 edges
	// 2 classes
}
