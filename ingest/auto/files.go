package auto

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/edgelist"
	"github.com/gnnstore/gnnstore/ingest/lines"
	"github.com/gnnstore/gnnstore/ingest/table"
	"github.com/gnnstore/gnnstore/ingest/torch"
	"github.com/gnnstore/gnnstore/store"
)

const (
	headBytes = 4 << 10
	tailBytes = 64 << 10 // of an archive, whose directory stands at its end
)

// head is the beginning of a file as it stands; what cannot be read is empty.
func head(path string) string {
	f, err := store.OpenFile(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	b, _ := io.ReadAll(io.LimitReader(f, headBytes))
	return string(b)
}

// file looks at the first bytes of a file, and then at its name.
func file(path string) (format, why string, err error) {
	name, start := filepath.Base(path), head(path)
	refuse := func(format string, args ...any) (string, string, error) {
		return "", "", fmt.Errorf("%s: "+format, append([]any{path}, args...)...)
	}
	if err := lines.RefusePointer(path); err != nil {
		return "", "", err
	}
	switch {
	case start == "":
		return refuse("the file is empty, or cannot be read; fetch it again")
	case strings.HasPrefix(start, "PK\x03\x04"):
		return packed(path)
	case strings.HasPrefix(start, "\x93NUMPY"):
		return "npy", name + ": an array of NumPy", nil
	case torch.IsLegacy([]byte(start)):
		return "pt", name + ": tensors of PyTorch", nil
	case strings.HasPrefix(start, "PAR1"):
		return refuse("a table in parquet, which needs a schema: gnnstore ingest table {infer} %s writes a first one",
			filepath.Dir(path))
	case strings.HasPrefix(name, "ind.") && strings.Count(name, ".") >= 2:
		return "planetoid", name + ": a file of a citation graph", nil
	case start[0] == 0x80:
		return refuse("a Python pickle that is none of PyTorch's or Planetoid's; save what it holds as .npz")
	}
	if lines.IsTar([]byte(start)) {
		return "mtx", name + ": a tar archive, with a matrix as collections pack it", nil
	}
	if err := lines.Foreign(path, []byte(start)); err != nil {
		if format, what := graphFile(start); format != "" {
			return format, name + ": " + what, nil
		}
		return "", "", err
	}
	switch ext := strings.ToLower(filepath.Ext(name)); ext {
	case ".yaml", ".yml":
		switch {
		case name == "metadata.yaml" && (hasKey(start, "graph") || hasKey(start, "graph_topology")):
			return "graphbolt", name + ": a GraphBolt dataset", nil
		case hasKey(start, "edge_data"):
			return "table", name + ": a CSVDataset of DGL", nil
		case hasKey(start, "nodes") || hasKey(start, "edges"):
			return "table", name + ": a schema of tables", nil
		}
		return refuse("YAML without nodes: and edges:, which a schema of tables has")
	case ".bin", ".npy", ".npz", ".pt", ".pth":
		return refuse("its first bytes are not those of a %s file; a dump without header is read by format npy, "+
			"which is told its shape", ext)
	}
	return text(path)
}

// graphFile recognises a graph in one file by the start of its text.
func graphFile(start string) (format, what string) {
	start = strings.TrimPrefix(start, "\ufeff")
	trimmed := strings.TrimLeft(start, " \t\r\n")
	switch {
	case strings.HasPrefix(start, "%%MatrixMarket") || strings.HasPrefix(start, "%MatrixMarket"):
		return "mtx", "a matrix in the Matrix Market format"
	case lines.IsTar([]byte(start)):
		return "mtx", "a tar archive, with a matrix as collections pack it"
	case strings.HasPrefix(trimmed, "<") && strings.Contains(start, "<graphml"):
		return "graphml", "a graph in GraphML"
	case strings.HasPrefix(trimmed, "{"):
		for _, key := range []string{"nodes", "links", "edges", "directed", "multigraph", "adjacency", "elements"} {
			if strings.Contains(start, `"`+key+`":`) {
				return "nodelink", "JSON with the key " + key
			}
		}
	}
	return "", ""
}

func hasKey(text, key string) bool { return strings.Contains("\n"+text, "\n"+key+":") }

// packed recognises archives by the names in their directory, as far as these stand in the last
// bytes.
func packed(path string) (format, why string, err error) {
	name := filepath.Base(path)
	for _, member := range append(firstMember(path), members(path)...) {
		base := member[strings.LastIndexByte(member, '/')+1:]
		switch {
		case base == "data.pkl":
			return "pt", name + ": " + member + ": tensors of PyTorch", nil
		case strings.HasSuffix(base, ".npy"):
			return "npz", name + ": " + base + ": arrays of NumPy", nil
		case strings.HasSuffix(base, ".mtx"):
			return "mtx", name + ": " + member + ": a matrix in the Matrix Market format", nil
		case base == "node.dat":
			return "hgb", name + ": " + member + ": a graph of the Heterogeneous Graph Benchmark", nil
		case strings.HasSuffix(member, "raw/edge.csv.gz"), base == "metadata.yaml", base == "meta.pt", base == "data.npz":
			return "", "", fmt.Errorf("%s: %s: a dataset in a zip archive; unpack it first and name the folder inside",
				path, member)
		}
	}
	return "", "", fmt.Errorf("%s: a zip archive of none of the formats that are recognised (%s); "+
		"unpack it and name what is inside", path, formats)
}

// firstMember is the name of the first member, which stands at the start of an archive. A large
// directory hides it, as a graph with many tensors has.
func firstMember(path string) []string {
	b := head(path)
	if len(b) < 30 {
		return nil
	}
	if n := int(binary.LittleEndian.Uint16([]byte(b[26:]))); len(b) >= 30+n && utf8.ValidString(b[30:30+n]) {
		return []string{b[30 : 30+n]}
	}
	return nil
}

// members are the names in the directory of a zip: its entries begin with a signature, and have the
// name at byte 46.
func members(path string) []string {
	f, err := store.OpenFile(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil
	}
	b := make([]byte, min(info.Size(), tailBytes))
	if _, err := f.ReadAt(b, info.Size()-int64(len(b))); err != nil {
		return nil
	}
	var names []string
	for {
		i := bytes.Index(b, []byte("PK\x01\x02"))
		if i < 0 || len(b) < i+46 {
			return names
		}
		b = b[i:]
		if n := int(binary.LittleEndian.Uint16(b[28:])); len(b) >= 46+n && utf8.Valid(b[46:46+n]) {
			names = append(names, string(b[46:46+n]))
		}
		b = b[4:]
	}
}

// text looks at the first row of a table, plain or packed by gzip or zstd.
func text(path string) (format, why string, err error) {
	name := filepath.Base(path)
	refuse := func(format string, args ...any) (string, string, error) {
		return "", "", fmt.Errorf("%s: "+format, append([]any{path}, args...)...)
	}
	in, err := lines.OpenAny(path)
	if err != nil {
		return "", "", err
	}
	defer in.Close()
	b, err := io.ReadAll(io.LimitReader(in, headBytes))
	if err != nil {
		return "", "", err
	}
	if format, what := graphFile(string(b)); format != "" {
		return format, name + ": " + what, nil
	}
	if err := lines.Foreign(path, b); err != nil {
		return "", "", err
	}
	if !utf8.Valid(b[:max(len(b)-utf8.UTFMax, 0)]) || bytes.IndexByte(b, 0) >= 0 {
		return refuse("not text, and not one of the formats that are recognised (%s)", formats)
	}
	rows := strings.Split(strings.TrimPrefix(string(b), "\ufeff"), "\n")
	first := ""
	var cells []string
	for i, row := range rows {
		if row = strings.TrimRight(row, "\r"); row != "" && row[0] != '#' && row[0] != '%' {
			first, cells = row, edgelist.Cells(strings.Join(rows[i:], "\n"))
			break
		}
	}
	if base := strings.TrimSuffix(strings.ToLower(name), ".gz"); strings.HasSuffix(base, ".mtx") {
		return "mtx", name + ": a matrix in the Matrix Market format by its name, without the banner", nil
	} else if strings.HasSuffix(base, ".adjlist") {
		return refuse("%s", lines.Adjacency(path))
	} else if is, metis := edgelist.IsNeighbours(string(b)); metis {
		return refuse("%s", lines.METIS(path))
	} else if is {
		return refuse("%s", lines.Adjacency(path))
	}
	numbers := 0
	for _, c := range cells[:min(len(cells), 2)] {
		if _, err := strconv.ParseInt(c, 10, 64); err == nil {
			numbers++
		}
	}
	_, _, named := edgelist.Ends(cells)
	low := strings.ToLower(first)
	page := strings.HasPrefix(low, "<!doctype") || strings.HasPrefix(low, "<html")
	switch {
	case !page && rdf(name) != "":
		return "triples", name + ": RDF as " + rdf(name), nil
	case first == "":
		return refuse("no row in its first %d bytes", headBytes)
	case first[0] == '{' || first[0] == '[':
		return refuse("JSON, which is no graph by itself; format csv takes a map of features by {node_features}")
	case page:
		return refuse("a web page, not a graph; fetch the file itself")
	case first[0] == '<' && strings.HasSuffix(strings.TrimSpace(first), "."), strings.HasPrefix(low, "@prefix "),
		strings.HasPrefix(low, "prefix "):
		return refuse("RDF triples: " +
			"rename it to end in .nt if it is N-Triples, in .nq if it is N-Quads, or in .ttl if it is Turtle")
	case strings.HasPrefix(low, ",src,dst,time"):
		return refuse("the events of a temporal graph of TGL (%s); name its folder: gnnstore ingest tgl %s OUT", lines.Clip([]byte(first)), filepath.Dir(path))
	case strings.HasSuffix(name, ".csv") && strings.Contains(name, "_edgelist") && (strings.HasPrefix(name, "tkgl-") || strings.HasPrefix(name, "thgl-")):
		return "tgb", fmt.Sprintf("%s: typed events of TGB, whose columns are %q", name, lines.Clip([]byte(first))), nil
	case strings.HasPrefix(low, ",u,i,ts"):
		return "tgn", fmt.Sprintf("%s: a temporal graph of TGN, whose columns are %q", name, lines.Clip([]byte(first))), nil
	case strings.HasPrefix(low, "user_id,item_id,timestamp"):
		return "jodie", fmt.Sprintf("%s: a temporal graph of JODIE, whose header is %q", name, lines.Clip([]byte(first))), nil
	case table.PropertyGraph(cells) != "":
		return refuse("%s", propertyWay(table.PropertyGraph(cells), filepath.Dir(path)))
	case timed(cells):
		return "", "", ingest.Ask("%s: is it a graph or a stream of events? Its columns are %q: gnnstore ingest csv %s OUT reads a graph, and "+
			"gnnstore ingest events %s OUT a stream in the order of times", path, lines.Clip([]byte(first)), path, path)
	case len(cells) < 2:
		return refuse("its first row has one column (%s), and an edge has two ids; if it counts edges, say gnnstore ingest csv FILE OUT {header} yes", lines.Clip([]byte(first)))
	case numbers == 2:
		return "csv", fmt.Sprintf("%s: an edge list, whose first row is %q", name, lines.Clip([]byte(first))), nil
	case named:
		return "csv", fmt.Sprintf("%s: an edge list, whose columns are %q", name, lines.Clip([]byte(first))), nil
	case len(cells) == 2:
		return "csv", fmt.Sprintf("%s: an edge list with text for ids, whose first row is %q", name,
			lines.Clip([]byte(first))), nil
	}
	return refuse("a table of %d columns (%s), of which nobody knows which are ids; name those of an edge list by gnnstore ingest csv FILE OUT "+
		"{columns} SRC,DST[,WEIGHT], or describe the table: gnnstore ingest table {infer} %s writes a first schema", len(cells), lines.Clip([]byte(first)), filepath.Dir(path))
}

// timed reports whether a header names the ends of edges and a time.
func timed(header []string) bool {
	_, _, ends := edgelist.Ends(header)
	return ends && slices.ContainsFunc(header, ingest.IsTimeName)
}

// rdf names the form of RDF that the end of a file's name tells; "" for other files.
func rdf(name string) string {
	name = strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".zst")
	return map[string]string{".nt": "N-Triples", ".nq": "N-Quads", ".ttl": "Turtle"}[filepath.Ext(name)]
}
