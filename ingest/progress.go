package ingest

// Progress reports how far one stage of a build has come.
type Progress struct {
	Stage string // "read edges", "write topology", …
	Done  int64
	Total int64  // -1 when not known beforehand
	Unit  string // of Done and Total: "edges", "nodes", "rows", …
}
