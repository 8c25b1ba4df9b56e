package ogb

import "strings"

// Info has facts about a dataset that OGB's Python package knows and the folder lacks.
type Info struct {
	Name       string // "ogbn_arxiv"
	Tasks      int    // columns of labels; 0 without
	Classes    int    // of a task
	Metric     string // "acc", "rocauc", "mrr", "hits@50"
	Split      string // the folder under split/
	AddReverse bool   // upstream adds the reverse of each edge when it loads the graph
	Hetero     bool   // more than one type of node
	Binary     bool   // npz instead of csv.gz
	Link       bool   // link prediction: the split is of edges; the graph has training edges alone
	download   string // what the folder in the download is called, where that is not Name less its prefix
}

// known are the tables of upstream's package (ogb/nodeproppred/master.csv,
// ogb/linkproppred/master.csv).
var known = []Info{
	{Name: "ogbn_proteins", Tasks: 112, Classes: 2, Metric: "rocauc", Split: "species", AddReverse: true},
	{Name: "ogbn_products", Tasks: 1, Classes: 47, Metric: "acc", Split: "sales_ranking", AddReverse: true},
	{Name: "ogbn_arxiv", Tasks: 1, Classes: 40, Metric: "acc", Split: "time"},
	{Name: "ogbn_mag", Tasks: 1, Classes: 349, Metric: "acc", Split: "time", Hetero: true},
	{Name: "ogbn_papers100M", Tasks: 1, Classes: 172, Metric: "acc", Split: "time", Binary: true, download: "papers100M_bin"},
	{Name: "ogbl_ppa", Metric: "hits@100", Split: "throughput", AddReverse: true, Link: true, download: "ppassoc"},
	{Name: "ogbl_collab", Metric: "hits@50", Split: "time", AddReverse: true, Link: true},
	{Name: "ogbl_citation2", Metric: "mrr", Split: "time", Link: true, download: "citation_v2"},
	{Name: "ogbl_wikikg2", Metric: "mrr", Split: "time", Link: true, download: "wikikg_v2"},
	{Name: "ogbl_ddi", Metric: "hits@20", Split: "target", AddReverse: true, Link: true},
	{Name: "ogbl_biokg", Metric: "mrr", Split: "random", Hetero: true, Link: true},
	{Name: "ogbl_vessel", Metric: "rocauc", Split: "spatial", Binary: true, Link: true},
}

// Lookup knows the ogbn and ogbl datasets under all their names: ogbn-arxiv, ogbn_arxiv, and arxiv
// as the download calls it.
func Lookup(name string) (Info, bool) {
	name = strings.ReplaceAll(name, "-", "_")
	for _, info := range known {
		_, short, _ := strings.Cut(info.Name, "_")
		for _, called := range []string{info.Name, short, info.download} {
			if called != "" && strings.EqualFold(called, name) {
				return info, true
			}
		}
	}
	return Info{}, false
}
