package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"

	"github.com/gnnstore/gnnstore/store/storetest"
)

// textSources are graphs in text, whose names have characters beyond ASCII where they may. Files
// that must be UTF-8 end in .yaml, .json, .graphml and .mtx.
var textSources = map[string]struct {
	args    []string // src first
	files   map[string]string
	encoded bool // it takes --encoding
}{
	"csv": {[]string{"e.csv", "--nodes", "n.csv", "--label", "größe"}, map[string]string{
		"e.csv": "src,dst\nZoë,Ünal\nÜnal,José\nJosé,Zoë\n", "n.csv": "id,x,größe\nZoë,1,groß\nÜnal,2,klein\nJosé,3,groß\n"}, true},
	"csv map": {[]string{"e.csv", "--node-features", "m.json"}, map[string]string{"e.csv": "0,1\n1,2\n2,0\n", "m.json": `{"0": [1], "1": [0, 2], "2": [1]}`}, true},
	"events":  {[]string{"e.csv", "--label", "gefühl"}, map[string]string{"e.csv": "u;v;t;gefühl\nZoë;Ünal;1;süß\nÜnal;Zoë;2;öde\nZoë;José;3;süß\n"}, true},
	"jodie":   {[]string{"e.csv"}, map[string]string{"e.csv": "user,item,zeit,größe,f\n0,0,1,0,0.5\n1,1,2,0,0.5\n0,1,3,1,2\n"}, true},
	"table": {[]string{"s.yaml"}, map[string]string{
		"s.yaml": "nodes:\n  - {type: a, files: n.csv, id: id, features: [x], label: größe, split: {train: l.csv, test: m.csv}}\n  - {type: b, files: n.jsonl, id: id, features: [x]}\n" +
			"edges: [{type: \"a:to:b\", files: e.tsv, src: s, dst: d}]\n",
		"n.csv": "id,x,größe\nZoë,1,groß\nÜnal,2,klein\nJosé,3,groß\n", "l.csv": "id\nZoë\n", "m.csv": "id\nÜnal\n", "n.jsonl": "{\"id\": \"é\", \"x\": 1}\n{\"id\": \"ü\", \"x\": 2}\n",
		"e.tsv": "s\td\nZoë\té\nÜnal\tü\nJosé\tü\n"}, true},
	"triples": {[]string{".", "--features", "degree"}, map[string]string{
		"train.txt": "Zoë\tgehört\tÜnal\nÜnal\tgehört\tJosé\n", "valid.txt": "José\tgehört\tZoë\n", "test.txt": "Zoë\tgehört\tJosé\n"}, true},
	"triples ids": {[]string{".", "--features", "degree"}, map[string]string{
		"train.txt": "0\t0\t1\n1\t0\t2\n", "valid.txt": "2\t0\t0\n", "test.txt": "0\t0\t2\n", "entities.dict": "0\tZoë\n1\tÜnal\n2\tJosé\n", "relations.dict": "0\tgehört\n"}, true},
	"nodelink": {[]string{"g.json", "--features", "degree"}, map[string]string{"g.json": `{"nodes": [{"id": "é"}, {"id": "ü"}], "links": [{"source": "é", "target": "ü"}]}`}, false},
	"graphml": {[]string{"g.graphml", "--features", "degree"}, map[string]string{
		"g.graphml": `<?xml version="1.0" encoding="UTF-8"?><graphml><graph edgedefault="directed"><node id="é"/><node id="ü"/><edge source="é" target="ü"/></graph></graphml>`}, false},
	"mtx": {[]string{"g.mtx", "--features", "degree"}, map[string]string{"g.mtx": mtxText}, false},
	"mtx nodes": {[]string{"g.mtx", "--nodes", "n.csv", "--label", "größe", "--decimal", "comma", "--header", "yes"}, map[string]string{
		"g.mtx": mtxText, "n.csv": "id;x;größe\n1;0,5;groß\n2;2;klein\n3;1,5;groß\n"}, true},
	"tgb": {[]string{"thgl-y_edgelist.csv"}, map[string]string{
		"thgl-y_edgelist.csv": "timestamp,head,tail,gehört\n1,Zoë,Ünal,süß\n2,Ünal,José,öde\n3,José,Zoë,süß\n",
		"thgl-y_nodetype.csv": "node_id,type\nZoë,groß\nÜnal,klein\nJosé,groß\n"}, true},
	"tgl": {[]string{"."}, map[string]string{
		"edges.csv":  ",src,dst,time,größe,ext_roll\n0,0,2,1.5,0,0\n1,1,2,2,0,1\n2,0,1,3,0,2\n",
		"labels.csv": ",node,time,label,größe,ext_roll\n0,0,1,0,é,0\n1,1,2,1,é,1\n2,2,3,0,é,2\n"}, true},
	"tgn": {[]string{"ml_g.csv"}, map[string]string{
		"ml_g.csv": ",u,i,ts,label,idx,größe\n0,1,3,0.0,0.0,1,é\n1,2,3,36.0,1.0,2,é\n2,1,4,77.0,0.0,3,é\n"}, true},
}

const mtxText = "%%MatrixMarket matrix coordinate pattern general\n3 3 2\n1 2\n2 3\n"

var sealed = regexp.MustCompile(`seal ([0-9a-f]+)`)

// TestTextEncodings: a graph in text is the same graph, with a byte order mark and in every
// encoding; without the option for it, other text is refused with its file.
func TestTextEncodings(t *testing.T) {
	storetest.Long(t)
	for name, source := range textSources {
		format, _, _ := strings.Cut(name, " ")
		run := func(write func(name, text string) string, args ...string) (seal, said string, code int) {
			dir := filepath.Join(t.TempDir(), "g") // the folder names the dataset
			require.NoError(t, os.Mkdir(dir, 0o777))
			for file, text := range source.files {
				require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(write(file, text)), 0o666))
			}
			all := append([]string{"ingest", format}, source.args...)
			for i, arg := range all {
				if _, ok := source.files[arg]; ok || arg == "." {
					all[i] = filepath.Join(dir, arg)
				}
			}
			all = append(append(all[:3:3], filepath.Join(dir, "o.gnn")), append(all[3:], args...)...)
			var stdout, stderr bytes.Buffer
			code = execute(all, &stdout, &stderr)
			if found := sealed.FindStringSubmatch(stdout.String()); found != nil {
				seal = found[1]
			}
			return seal, stderr.String(), code
		}
		want, said, code := run(func(_, text string) string { return text })
		require.Zero(t, code, "%s: %s", name, said)
		require.NotEmpty(t, want)
		seal, said, code := run(func(_, text string) string { return "\ufeff" + text })
		require.Zero(t, code, "%s: %s", name, said)
		require.Equal(t, want, seal, name)
		if !source.encoded {
			continue
		}
		for encoding, encoder := range map[string]interface{ String(string) (string, error) }{
			"latin1": charmap.ISO8859_1.NewEncoder(), "cp1252": charmap.Windows1252.NewEncoder(),
			"utf-16": unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder(),
		} {
			other := false
			write := func(name, text string) string {
				switch filepath.Ext(name) {
				case ".yaml", ".json", ".graphml", ".mtx":
					return text
				}
				written, err := encoder.String(text)
				require.NoError(t, err)
				other = other || written != text
				return written
			}
			seal, said, code := run(write, "--encoding", encoding)
			require.Zero(t, code, "%s in %s: %s", name, encoding, said)
			require.Equal(t, want, seal, "%s in %s", name, encoding)
			if _, said, code = run(write); !other {
				continue
			}
			require.Equal(t, 1, code, "%s in %s", name, encoding)
			last := strings.Split(strings.TrimSpace(said), "\n")
			require.Regexp(t, `^gnnstore: .*(\.csv|\.tsv|\.jsonl|\.txt|\.dict): (line \d: )?the text is not UTF-8.* --encoding `, last[len(last)-1], name)
		}
	}
}
