package graph

import (
	"encoding/json"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/run"
)

// TestFirstOtherClassIsNamed: of two datasets with a thousand classes each, the refusal names
// the first class that differs, and no other.
func TestFirstOtherClassIsNamed(t *testing.T) {
	cities := func(change func(names []string)) *store.Manifest {
		names := make([]string, 1000)
		for i := range names {
			names[i] = "city " + strconv.Itoa(i)
		}
		change(names)
		return &store.Manifest{Labels: []store.Label{{NodeType: "user", Classes: 1000, ClassNames: names}}}
	}
	same := func([]string) {}
	trained, other := cities(same), cities(func(names []string) { names[7], names[8] = names[8], names[7] })
	require.Empty(t, differ(trained, cities(same), run.Options{}))
	require.Equal(t, `has class 7 of type user named "city 8", not named "city 7"`, differ(trained, other, run.Options{}))
	other.Labels[0].ClassNames = nil
	require.Equal(t, `has class 0 of type user without a name, not named "city 0"`, differ(trained, other, run.Options{}))
	require.Equal(t, `has class 0 of type user named "city 0", not without a name`, differ(other, trained, run.Options{}))
	other.Labels = nil // a dataset to predict on needs none
	require.Empty(t, differ(trained, other, run.Options{}))
}

// TestTrainedOnIsKept: the description of a dataset comes back from its JSON, for every task.
func TestTrainedOnIsKept(t *testing.T) {
	nodes, links := open(t, storetest.Communities(200, 4, 8, 16, 2)), open(t, linked(600))
	trust := openTyped(t, storetest.Trust(400, true, true))
	edges := func(label string) run.Options {
		o := edgeOptions()
		o.EdgeLabel = label
		return o
	}
	for name, c := range map[string]struct {
		ds *store.Dataset
		o  run.Options
	}{
		"nodes": {nodes, small()}, "links": {links, linkOptions()}, "classes of edges": {trust, edges("rating")},
		"signs of edges": {trust, edges("rating:sign")}, "numbers of edges": {trust, edges("rating:value")},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := data.Open(c.ds, dataOptions(c.o.WithDefaults()))
			require.NoError(t, err)
			want := newTrainedOn(d)
			text, err := json.Marshal(want)
			require.NoError(t, err)
			record := &run.Record{Seal: c.ds.Manifest().Seal, Options: c.o}
			got, err := decodeTrainedOn(text, record)
			require.NoError(t, err)
			require.Equal(t, want.Manifest, got.Manifest)
			if !c.o.Links() && !c.o.Edges() {
				require.Equal(t, want.label, got.label)
			}
			want.label, got.label = nil, nil
			require.Equal(t, want, got)
			record.Seal = "other"
			_, err = decodeTrainedOn(text, record)
			require.ErrorContains(t, err, "the run trained on one with other")
		})
	}
}

// TestTrainedOnDamaged: a damaged description is refused, or compares as the undamaged one does.
func TestTrainedOnDamaged(t *testing.T) {
	ds := openTyped(t, storetest.Trust(40, true, true))
	o := edgeOptions()
	d, err := data.Open(ds, dataOptions(o.WithDefaults()))
	require.NoError(t, err)
	text, err := json.Marshal(newTrainedOn(d))
	require.NoError(t, err)
	record := &run.Record{Seal: ds.Manifest().Seal, Options: o}
	rapid.Check(t, func(t *rapid.T) {
		damaged := slices.Clone(text)
		damaged[rapid.IntRange(0, len(text)-1).Draw(t, "at")] ^= byte(rapid.IntRange(1, 255).Draw(t, "change"))
		known, err := decodeTrainedOn(damaged[:rapid.IntRange(len(text)/2, len(text)).Draw(t, "length")], record)
		if err == nil {
			require.Empty(t, differ(known.Manifest, ds.Manifest(), o))
			require.NotNil(t, known.Edges)
		}
	})
}
