package run

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTableHasEveryOption: each field of Options that a record holds is a row of the table, and the
// table has no other row. The fields of cachetier.Options that have no flag are left out: a run
// fills them by itself.
func TestTableHasEveryOption(t *testing.T) {
	var want []string
	var walk func(of reflect.Type)
	walk = func(of reflect.Type) {
		for i := range of.NumField() {
			f := of.Field(i)
			key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case key == "-":
			case f.Type.Kind() == reflect.Struct:
				walk(f.Type)
			default:
				want = append(want, key)
			}
		}
	}
	walk(reflect.TypeOf(Options{}))
	var got []string
	for key := range Table.Flags() {
		got = append(got, key)
	}
	byRun := []string{"static_bytes", "prewarm", "readers"}
	require.Subset(t, want, byRun)
	set := map[string]bool{}
	for _, key := range want {
		set[key] = true
	}
	for _, key := range byRun {
		delete(set, key)
	}
	var keys []string
	for key := range set {
		keys = append(keys, key)
	}
	require.ElementsMatch(t, keys, got)
}

// TestRowsAreApart: no two rows set the same field.
func TestRowsAreApart(t *testing.T) {
	samples := []string{"7", "0.5", "true", "nested", "smoothed", "best", "epoch", "a=x", "a=1,2", "1MiB", "learnt", "late", "none", "f16", "fixed", "90s", Independent}
	for _, d := range Table {
		if d.Flag == "fixed-time" { // it sets times
			continue
		}
		o := DefaultOptions()
		before := o
		changed := false
		for _, text := range samples {
			if d.In(&o).Set(text) == nil && d.In(&o).String() != d.In(&before).String() {
				changed = true
				break
			}
		}
		require.True(t, changed, d.Key)
		for _, other := range Table {
			if other.Key != d.Key {
				require.Equal(t, other.In(&before).String(), other.In(&o).String(), "%s changes %s", d.Key, other.Key)
			}
		}
	}
}
