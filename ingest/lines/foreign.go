package lines

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
)

// foreign lists files that are no tables, by their first bytes. say names the format and the way
// to convert the file. FILE in it stands for the file's name.
var foreign = []struct{ start, say string }{
	{lfsStart, lfsSay},
	{"PK\x03\x04", "a zip archive; unpack it first and name the file inside"},
	{"BZh", "packed by bzip2 or xz; unpack it, or pack it by gzip or zstd"},
	{"\xfd7zXZ\x00", "packed by bzip2 or xz; unpack it, or pack it by gzip or zstd"},
	{"\xff\xfe", "text in UTF-16; convert it to UTF-8: iconv -f UTF-16 -t UTF-8 FILE > PLAIN"},
	{"\xfe\xff", "text in UTF-16; convert it to UTF-8: iconv -f UTF-16 -t UTF-8 FILE > PLAIN"},
	{"%%MatrixMarket", "a matrix in the Matrix Market format; format mtx reads it: gnnstore ingest mtx FILE OUT"},
	{"MATLAB 5.0 MAT-file", "a MATLAB file, which is not read; write its matrices as .npz, all of them: python3 -c \"import numpy as np, scipy.io, scipy.sparse as s; " +
		"m = scipy.io.loadmat('FILE'); k = next(k for k in m if s.issparse(m[k])); a = m[k].tocsr(); np.savez('graph.npz', indptr=a.indptr, indices=a.indices, " +
		"data=a.data, **{n: v.toarray() if s.issparse(v) else v for n, v in m.items() if n[0] != '_' and n != k})\"; then gnnstore ingest npz graph.npz OUT " +
		"{array_labels} NAME {array_features} NAME"},
	{"MATLAB 7.3 MAT-file", "a MATLAB file of version 7.3, which is HDF5 and is not read; write its arrays as .npz, sparse ones by columns, dense ones turned: " +
		"python3 -c \"import h5py, numpy as np; f = h5py.File('FILE'); a = {}; f.visititems(lambda n, d: a.update({'indptr' if n.endswith('/jc') else " +
		"'indices' if n.endswith('/ir') else 'data' if n.endswith('/data') else n.replace('/', '_'): d[()].T}) if isinstance(d, h5py.Dataset) and n[0] != '#' else None); np.savez('graph.npz', **a)\"; " +
		"then gnnstore ingest npz graph.npz OUT {csr_rows} dst {array_labels} NAME {array_features} NAME"},
	{"\x89HDF\r\n\x1a\n", "an HDF5 file, which is not read; write its arrays as .npz, all of them: python3 -c \"import h5py, numpy; f = h5py.File('FILE'); a = {}; " +
		"f.visititems(lambda n, d: a.update({n.replace('/', '_'): d[()]}) if isinstance(d, h5py.Dataset) else None); numpy.savez('graph.npz', **a)\"; then " +
		"gnnstore ingest npz graph.npz OUT, which may need {array_edges}, {array_features} and {array_labels}"},
	{"\x3f\xa1\xb4\x46\xf0\x4f\x2e\xdd", "a graph of DGL, which is not read; write it as PyTorch Geometric's, with its features and labels: python3 -c \"import dgl, torch; " +
		"from torch_geometric.utils import from_dgl; torch.save(from_dgl(dgl.load_graphs('FILE')[0][0]), 'graph.pt')\"; then gnnstore ingest pt graph.pt OUT"},
}

// foreignText lists graphs in text formats, by patterns in their first bytes. The patterns allow a
// little text before the keyword.
var foreignText = []struct {
	pattern *regexp.Regexp
	say     string
}{
	{regexp.MustCompile(`^\s*<[^>]*>?(?s:.*)<graphml\b|^\s*<graphml\b`), "a graph in GraphML; format graphml reads it: gnnstore ingest graphml FILE OUT"},
	{regexp.MustCompile(`^\s*<[^>]*>?(?s:.*)<gexf\b|^\s*<gexf\b`), "a graph in GEXF, which is not read; " + nodeLink("gexf")},
	{regexp.MustCompile(`^(?:\s|#[^\n]*\n|[A-Za-z]+[ \t][^\n\[]*\n)*graph\s*\[`), "a graph in GML, which is not read; " + nodeLink("gml")},
	{regexp.MustCompile(`^(?:\s|%[^\n]*\n)*\*(?i:vertices|network)\b`), "a graph in Pajek's format, which is not read; " + nodeLink("pajek")},
}

// nodeLink is the line with which NetworkX writes a graph that it reads as node-link JSON.
func nodeLink(format string) string {
	return "write it as node-link JSON, with its labels and features: python3 -c \"import json, networkx as nx; json.dump(nx.node_link_data(nx.read_" + format +
		"('FILE')), open('graph.json', 'w'))\"; then gnnstore ingest nodelink graph.json OUT"
}

// Adjacency refuses an adjacency list, with a line that converts it.
func Adjacency(name string) string {
	return named("an adjacency list, a node and its neighbours a row, is not read; "+nodeLink("adjlist"), name)
}

// METIS refuses a graph of METIS, with a line that converts it. The matrix has all nodes, and the
// weights of edges.
func METIS(name string) string {
	return named("a graph of METIS, the neighbours of a node a row, which is not read; write it as a matrix, which keeps weights of edges: python3 -c \""+
		"L = [l.split() for l in open('FILE') if l[:1] != '%']; h = L[0] + ['0', '1'][max(0, len(L[0]) - 2):]; f = h[2].zfill(3); s = int(f[0]) + int(f[1]) * int(h[3]); "+
		"e = 1 + int(f[2]); E = [[str(i)] + l[k:k + e] for i, l in enumerate(L[1:], 1) for k in range(s, len(l), e)]; print(h[0], h[0], len(E)); "+
		"[print(*x) for x in E]\" > graph.mtx; then gnnstore ingest mtx graph.mtx OUT", name)
}

// foreignBytes is as much as the patterns look at.
const foreignBytes = 4 << 10

// A tar begins with a header of 512 bytes, which has its magic at byte 257 (POSIX.1-1988).
const (
	tarHead  = 512
	tarMagic = 257
)

// IsTar reports whether a file with these first bytes is a tar archive.
func IsTar(head []byte) bool {
	return len(head) >= tarHead && bytes.HasPrefix(head[tarMagic:], []byte("ustar"))
}

// Foreign returns an error for a file whose first bytes show another format than a table's.
func Foreign(name string, head []byte) error {
	for _, f := range foreign {
		if bytes.HasPrefix(head, []byte(f.start)) {
			return fmt.Errorf("%s: %s", name, named(f.say, name))
		}
	}
	if IsTar(head) {
		return fmt.Errorf("%s: %s", name, named("a tar archive; unpack it first and name the file inside, or, if that is a matrix (.mtx), say gnnstore ingest mtx FILE OUT", name))
	}
	head = bytes.TrimPrefix(head, byteOrderMark)
	for _, f := range foreignText {
		if f.pattern.Match(head) {
			return fmt.Errorf("%s: %s", name, named(f.say, name))
		}
	}
	return nil
}

// named replaces FILE in a text by the name of the file, unless the name needs escapes in a command
// line.
func named(say, name string) string {
	if !Printable(name) || strings.ContainsAny(name, "'\"\\$`: ") {
		return say
	}
	return strings.ReplaceAll(say, "FILE", name)
}

// Git LFS leaves a text of three lines in place of a file that it has not fetched
// (git-lfs/docs/spec.md).
const (
	lfsStart = "version https://git-lfs.github.com/spec/v1"
	lfsSay   = "a Git LFS pointer in place of the file; run git lfs pull in its repository, which fetches the file"
	lfsMost  = 1024 // bytes, by the specification
)

// RefusePointer is an error where the file at path is a Git LFS pointer, whatever its name ends in.
// What cannot be read is none.
func RefusePointer(path string) error {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > lfsMost {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	head := make([]byte, len(lfsStart))
	if _, err := io.ReadFull(f, head); err != nil || string(head) != lfsStart {
		return nil
	}
	return fmt.Errorf("%s: %s", path, lfsSay)
}
