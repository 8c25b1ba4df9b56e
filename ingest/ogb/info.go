package ogb

import "strings"

// Info is what OGB's Python package knows about a dataset and the folder does not say.
type Info struct {
	Name       string // "ogbn_arxiv"
	Tasks      int    // columns of labels
	Classes    int    // of a task
	Metric     string // "acc" or "rocauc"
	Split      string // the folder under split/
	AddReverse bool   // upstream adds the reverse of each edge when it loads the graph
	Hetero     bool   // more than one type of node
	Binary     bool   // raw/data.npz instead of csv.gz
}

var known = []Info{
	{Name: "ogbn_proteins", Tasks: 112, Classes: 2, Metric: "rocauc", Split: "species", AddReverse: true},
	{Name: "ogbn_products", Tasks: 1, Classes: 47, Metric: "acc", Split: "sales_ranking", AddReverse: true},
	{Name: "ogbn_arxiv", Tasks: 1, Classes: 40, Metric: "acc", Split: "time"},
	{Name: "ogbn_mag", Tasks: 1, Classes: 349, Metric: "acc", Split: "time", Hetero: true},
	{Name: "ogbn_papers100M", Tasks: 1, Classes: 172, Metric: "acc", Split: "time", Binary: true},
}

// Lookup knows the ogbn datasets under all their names: ogbn-arxiv, ogbn_arxiv, and arxiv as the download calls it.
func Lookup(name string) (Info, bool) {
	name = strings.ReplaceAll(name, "-", "_")
	name = strings.TrimSuffix(name, "_bin") // papers100M-bin is a download
	if !strings.HasPrefix(name, "ogbn_") {
		name = "ogbn_" + name
	}
	for _, info := range known {
		if strings.EqualFold(info.Name, name) {
			return info, true
		}
	}
	return Info{}, false
}
