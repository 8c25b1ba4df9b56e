package ingest

// Progress says how far one stage of a build is.
type Progress struct {
	Stage string // "read edges", "write topology", …
	Done  int64
	Total int64  // -1 when not known beforehand
	Unit  string // of Done and Total: "edges", "nodes", "rows", …
}
