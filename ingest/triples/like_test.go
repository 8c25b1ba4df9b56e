package triples

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/build"
	"github.com/gnnstore/gnnstore/ingest/sourcetest"
)

// TestLike: relations are called and numbered as in the dataset to follow, by their names in the
// source, although the new triples alone would have other names for them.
func TestLike(t *testing.T) {
	old := write(t, map[string]string{"train.txt": "a\tx y\tb\na\tx_y\tb\na\tlikes\tb\n"})
	d, _ := sealed(t, old, Options{}, build.Options{})
	said, err := d.Encodings()
	require.NoError(t, err)
	require.Equal(t, "x_y_2", d.Manifest().Relations[2].Name)
	l := &ingest.Like{Name: "old.gnn", Identity: "1", Encodings: said}
	opened := func(text string) ingest.Source {
		path := filepath.Join(write(t, map[string]string{"new.txt": text}), "new.txt")
		s, err := Options{Like: l}.Open(path)
		require.NoError(t, err)
		return ingest.Follow(s, path, l)
	}
	s := opened("c\tx_y\tb\nb\tlikes\ta\n")
	g, err := sourcetest.Read(s)
	require.NoError(t, err)
	require.Len(t, g.Schema.Relations, 3)
	require.Equal(t, []string{"b"}, g.Relation("entity__likes__entity").SrcTexts)
	require.Empty(t, g.Relation("entity__x_y__entity").SrcTexts)
	require.Equal(t, []string{"c"}, g.Relation("entity__x_y_2__entity").SrcTexts)
	require.Equal(t, []string{"likes", "x y", "x_y"}, s.Extras().Describe().Names)
	for i, r := range d.Manifest().Relations {
		require.Equal(t, r.Name, g.Schema.Relations[i].Name)
	}
	_, err = sourcetest.Read(opened("a\tx-y\tb\nb\tlikes\ta\n"))
	require.ErrorContains(t, err, `new.txt: relation "x-y" is not there; there are likes, x y, x_y; leave its triples out`)
	l.Silent = true // then only the names are compared
	g, err = sourcetest.Read(opened("c\tx_y\tb\n"))
	require.NoError(t, err)
	require.Equal(t, []string{"c"}, g.Relation("entity__x_y__entity").SrcTexts)
}
