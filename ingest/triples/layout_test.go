package triples

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest/build"
	"github.com/gnnstore/gnnstore/ingest/lines"
)

// TestLayouts: columns in another order, headers, ids with dictionaries, and further columns all
// give the graph of two triples and one held out.
func TestLayouts(t *testing.T) {
	want := []string{"rome capital_of italy", "italy in europe", "test: rome in europe"}
	const names, relations = "0\trome\n1\titaly\n2\teurope\n", "0\tcapital_of\n1\tin\n"
	for name, c := range map[string]struct {
		files map[string]string
		o     Options
	}{
		"order": {map[string]string{"train.txt": "rome italy capital_of\nitaly europe in\n", "test.txt": "rome europe in\n"},
			Options{Columns: []string{"head", "tail", "relation"}}},
		"further columns": {map[string]string{"train.txt": "7 rome capital_of italy x\n7 italy in europe y\n", "test.txt": "1 rome in europe z\n"},
			Options{Columns: []string{"year", "head", "relation", "tail", "note"}}},
		"headers": {map[string]string{"train.tsv": "T\tP\tS\n-\t--\t-\nitaly\tcapital_of\trome\neurope\tin\titaly\n",
			"test.tsv": "subject\tpredicate\tobject\nrome\tin\teurope\n"}, Options{}},
		"a header of other words": {map[string]string{"train.tsv": "from\tby\tto\nrome\tcapital_of\titaly\nitaly\tin\teurope\n",
			"test.tsv": "from\tby\tto\nrome\tin\teurope\n"}, Options{Header: HeaderYes}},
		"OpenKE": {map[string]string{"train2id.txt": "2\n0 1 0\n1 2 1\n", "test2id.txt": "1\n0 2 1\n", "entity2id.txt": "3\nrome\t0\nitaly\t1\neurope\t2\n",
			"relation2id.txt": "2\ncapital_of\t0\nin\t1\n"}, Options{}},
		"DGL-KE":      {map[string]string{"train.tsv": "0\t0\t1\n1\t1\t2\n", "test.tsv": "0\t1\t2\n", "entities.dict": names, "relations.dict": relations}, Options{}},
		"DGL-KE, raw": {map[string]string{"train.tsv": "rome\tcapital_of\titaly\nitaly\tin\teurope\n", "test.tsv": "rome\tin\teurope\n", "entities.dict": names, "relations.dict": relations}, Options{}},
		"LibKGE":      {map[string]string{"train.del": "0\t0\t1\n1\t1\t2\n", "test.del": "0\t1\t2\n", "entity_ids.del": names, "relation_ids.del": relations, "dataset.yaml": "dataset:\n"}, Options{}},
		"PyKEEN": {map[string]string{"numeric_triples.tsv.gz": "head\trelation\ttail\n0\t0\t1\n1\t1\t2\n", "base.pth": "PK",
			"entity_to_id.tsv.gz": "id\tlabel\n" + names, "relation_to_id.tsv.gz": "id\tlabel\n" + relations}, Options{}},
		"PyKEEN, names first": {map[string]string{"train.tsv": "0\t0\t1\n1\t1\t2\n", "test.tsv": "0\t1\t2\n",
			"entity_to_id.tsv":   "label\tid\nrome\t0\nitaly\t1\neurope\t2\n",
			"relation_to_id.tsv": "label\tid\ncapital_of\t0\nin\t1\n"}, Options{}},
		"LibKGE, both": {map[string]string{"train.txt": "rome\tcapital_of\titaly\nitaly\tin\teurope\n", "test.txt": "rome\tin\teurope\n", "train.del": "0\t0\t1\n", "entity_ids.del": names, "relation_ids.del": relations}, Options{}},
	} {
		t.Run(name, func(t *testing.T) {
			d, _ := sealed(t, write(t, c.files), c.o, build.Options{Features: "none"})
			want := want
			if name == "PyKEEN" { // it has a folder for each part
				want = want[:2]
			}
			require.ElementsMatch(t, want, written(t, d))
		})
	}
}

func TestUnseen(t *testing.T) {
	dir := write(t, map[string]string{"train.txt": "a r b\nb r c\n", "valid.txt": "a r c\n", "test.txt": "a r new\nother r new\nb r a\n"})
	d, rep := sealed(t, dir, Options{}, build.Options{Features: "none"})
	require.Len(t, written(t, d), 6)
	require.Contains(t, strings.Join(rep.Notes, "\n"), "2 held-out triples have an entity that no training triple has, 2 entities in all: they are kept")
	d, rep = sealed(t, dir, Options{Unseen: UnseenDrop}, build.Options{Features: "none"})
	require.Len(t, written(t, d), 4)
	require.Contains(t, strings.Join(rep.Notes, "\n"), "2 held-out triples have an entity that no training triple has, 2 entities in all: {unseen} drop")
}

// TestUnseenWithoutMemory: where entities do not fit in memory, none is counted, and none dropped.
func TestUnseenWithoutMemory(t *testing.T) {
	dir := write(t, map[string]string{"train.txt": "a r b\nb r c\n", "test.txt": "a r new\n"})
	for room, want := range map[int64]string{
		3 * 65: "they take more than a sixteenth of {memory}", // with the held-out triple
		2 * 65: "they take more than a sixteenth of {memory}",
		4 * 66: "1 held-out triples have an entity that no training triple has",
	} {
		_, rep := sealed(t, dir, Options{Memory: 16 * room}, build.Options{Features: "none"})
		require.Contains(t, strings.Join(rep.Notes, "\n"), want)
	}
	src, err := Options{Memory: 16 * 2 * 65, Unseen: UnseenDrop}.Open(dir)
	require.NoError(t, err)
	_, err = src.Schema(t.Context())
	require.ErrorContains(t, err, "{unseen} drop: the entities of "+dir+" take more than a sixteenth of {memory}; give it more")
}

// TestDictionaryIdentity: another dictionary makes another graph of the same triples.
func TestDictionaryIdentity(t *testing.T) {
	files := map[string]string{"train2id.txt": "1\n0 1 0\n", "entity2id.txt": "2\na\t0\nb\t1\n", "relation2id.txt": "1\nr\t0\n"}
	dir := write(t, files)
	identity := func() string {
		src, err := Options{}.Open(dir)
		require.NoError(t, err)
		schema, err := src.Schema(t.Context())
		require.NoError(t, err)
		return schema.Identity
	}
	before := identity()
	require.Equal(t, before, identity())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "entity2id.txt"), []byte("2\naa\t0\nb\t1\n"), 0o666))
	require.NotEqual(t, before, identity())
}

func TestOrderNoted(t *testing.T) {
	text := "a b r\nc d r\ne f s\ng h s\n"
	_, rep := sealed(t, write(t, map[string]string{"train.txt": text}), Options{}, build.Options{Features: "none"})
	require.Contains(t, strings.Join(rep.Notes, "\n"), "4 triples have 4 relations and 2 tails, so the third column looks like the relation")
}

// TestLayoutRefused: each mistake is one line with file, place and reason.
func TestLayoutRefused(t *testing.T) {
	const entities, relations = "2\na\t0\nb\t1\n", "1\nr\t0\n"
	openKE := func(name, text string) map[string]string {
		files := map[string]string{"train2id.txt": "1\n0 1 0\n", "entity2id.txt": entities, "relation2id.txt": relations}
		files[name] = text
		return files
	}
	for _, c := range []struct {
		files map[string]string
		want  string
	}{
		{openKE("train2id.txt", "5\n0 1 0\n"), "the first line says 5 triples, and the file has 1; is it complete?"},
		{openKE("train2id.txt", "99999999999999999999\n0 1 0\n"), "the first line says 99999999999999999999 triples"},
		{openKE("train2id.txt", "2\n0 1 0\n0 7 0\n"), `line 3, column 2: id "7" is not in entity2id.txt`},
		{openKE("train2id.txt", "1\n0 0 1\n"), `line 2, column 3: id "1" is not in relation2id.txt`},
		{openKE("entity2id.txt", "9000000000000000000\na\t0\nb\t1\n"), "the first line says 9000000000000000000 names, and there are 2"},
		{openKE("entity2id.txt", "2\na\t0\nb\t0\n"), `entity2id.txt: line 3: id 0 is that of "a" as well`},
		{openKE("entity2id.txt", "2\na\t0\na\t1\n"), `line 3: "a" has an id before; a name has one`},
		{openKE("entity2id.txt", "2\na\tx\n"), `line 2: "x" is no id`},
		{openKE("entity2id.txt", "2\na\t0\tc\n"), "line 2: found 3 columns; a dictionary has an id and a name"},
		{openKE("entity2id.txt", "two\na\t0\n"), `line 1: "two" is neither the number of names nor`},
		{openKE("entity2id.txt", ""), "entity2id.txt: the file is empty"},
		{openKE("entity2id.txt", "\n\n"), "entity2id.txt: it has no id and no name; is the file complete?"},
		{openKE("entity2id.txt", "0\n"), "entity2id.txt: it has no id and no name"},
		{openKE("relation2id.txt", " "), "relation2id.txt: it has no id and no name"},
		{openKE("entity2id.txt", "2\na\t0\nb\t"), "entity2id.txt: line 3: found 1 columns; a dictionary has an id and a name"},
		{openKE("entity2id.txt", "2\na\t0\n"), "entity2id.txt: line 2: the first line says 2 names, and there are 1; is the file complete?"},
		{openKE("entity2id.txt", "a\t0\n"), `line 2, column 2: id "1" is not in entity2id.txt`},
		{map[string]string{"numeric_triples.tsv": "0\t0\t1\n"}, "no entity2id.txt, entity_ids.del or entity_to_id.tsv beside"},
		{map[string]string{"train2id.txt": "1\n0 1 0\n"}, "no entity2id.txt, entity_ids.del or entity_to_id.tsv beside them has the names"},
		{map[string]string{"train2id.txt": "1\n0 1 0\n", "entity2id.txt": entities}, "there is entity2id.txt, and no relation2id.txt beside it"},
		{map[string]string{"train.txt": "x r y\n", "entities.dict": "0\ta\n", "relations.dict": "0\tr\n"}, `the head "x", which is neither an id nor a name in entities.dict`},
		{map[string]string{"train.txt": "a r b 1\n"}, "line 1: found 4 columns; a triple has three, head, relation and tail, between tabs or blanks; {columns} names them"},
	} {
		src, err := Options{}.Open(write(t, c.files))
		require.NoError(t, err)
		_, err = src.Schema(t.Context())
		require.ErrorContains(t, err, c.want)
		require.NotContains(t, err.Error(), "\n")
	}
	for _, o := range []Options{{Columns: []string{"head", "tail"}}, {Columns: []string{"h", "head", "r", "t"}}, {Header: "maybe"}, {Unseen: "lose"}} {
		require.Error(t, o.Validate())
	}
	_, err := Options{Columns: []string{"head", "relation", "tail", "year"}}.Open(filepath.Join(write(t, map[string]string{"a.txt": "a r b\n"}), "a.txt"))
	require.NoError(t, err)
}

// FuzzDictionary: whatever a dictionary holds, ids and names are one to one, and an error is one
// line.
func FuzzDictionary(f *testing.F) {
	f.Add("2\na\t0\nb\t1\n", true)
	f.Add("0\ta\n1\tb c\n", false)
	f.Add("99999999999999999999\n", true)
	f.Fuzz(func(t *testing.T, text string, nameFirst bool) {
		in, err := lines.New("d", strings.NewReader(text))
		if err != nil {
			return
		}
		defer in.Close()
		room := int64(1 << 20)
		d, err := parseDictionary(in, "d", nameFirst, &room)
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
			return
		}
		names := map[string]bool{}
		for id, name := range d.of {
			require.NotEmpty(t, id)
			require.NotEmpty(t, name)
			require.False(t, names[name])
			names[name] = true
		}
	})
}
