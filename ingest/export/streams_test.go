package export

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/ingest/build"
	"github.com/gnnstore/gnnstore/ingest/edgelist"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

// ingested reads a table of events with the options of gnnstore ingest events.
func ingested(t require.TestingT, table, out string, args []string) *store.Dataset {
	l, o := edgelist.Options{Events: true}, build.Options{DType: build.F16, FS: storetest.NoSync}
	for len(args) > 0 {
		flag := args[0]
		switch args = args[1:]; flag {
		case "--bipartite":
			l.Bipartite = true
			continue
		case "--one-id-space":
			l.OneSpace = true
			continue
		}
		value := args[0]
		args = args[1:]
		var err error
		switch flag {
		case "--header":
			l.Header = value
		case "--src":
			l.Src = value
		case "--dst":
			l.Dst = value
		case "--time":
			l.Time = value
		case "--label":
			l.EventLabel = value
		case "--part":
			l.Part = value
		case "--id-type":
			l.IDType = value
		case "--node-count":
			l.Count, err = strconv.ParseInt(value, 10, 64)
		case "--edge-features":
			l.EdgeFeatures = strings.Split(value, ",")
		case "--dtype":
			o.DType = build.DType(value)
		case "--order":
			o.Order = build.Order(value)
		case "--split":
			o.Split = value
		case "--time-scale":
			o.TimeScale, err = strconv.ParseFloat(value, 64)
		default:
			err = errors.New(flag)
		}
		require.NoError(t, err)
	}
	s, err := edgelist.Open(table, l)
	require.NoError(t, err)
	defer s.Close()
	_, err = build.Build(context.Background(), s, out, o)
	require.NoError(t, err)
	d, err := store.Open(out)
	require.NoError(t, err)
	return d
}

// TestStreams: what is exported of a stream is ingested to the same dataset, bit by bit.
func TestStreams(t *testing.T) {
	storetest.Long(t)
	rapid.Check(t, func(t *rapid.T) {
		dir := tempDir(t)
		defer os.RemoveAll(dir)
		var text strings.Builder
		columns := rapid.IntRange(0, 12).Draw(t, "columns")
		header := "a,b,when,what,roll"
		for c := range columns {
			header += fmt.Sprintf(",f%d", c)
		}
		text.WriteString(header + "\n")
		ids := rapid.SampledFrom([][]string{{"0", "1", "2", "3"}, {"7", "900", "12", "9007199254740993"}, {"ann", "\"b, ob\"", "007", "\u00e7elik"}}).Draw(t, "ids")
		what := rapid.SampledFrom([][]string{{"0", "1", "2"}, {"calm", "\"cross, \"\"very\"\"\"", "", "-5"}}).Draw(t, "labels")
		n := rapid.IntRange(1, 30).Draw(t, "events")
		roll, last := 0, 0.0
		times := make([]float64, n)
		for i := range times {
			times[i] = rapid.OneOf(rapid.Float64Range(-1e9, 2e9), rapid.SampledFrom([]float64{0, 1.7e9 + 0.25, -3})).Draw(t, "time")
		}
		slices.Sort(times)
		for i, at := range times {
			if at != last || i == 0 {
				roll = min(2, roll+rapid.IntRange(0, 1).Draw(t, "next part"))
			}
			last = at
			fmt.Fprintf(&text, "%s,%s,%s,%s,%d", rapid.SampledFrom(ids).Draw(t, "src"), rapid.SampledFrom(ids).Draw(t, "dst"),
				strconv.FormatFloat(at, 'g', -1, 64), rapid.SampledFrom(what).Draw(t, "label"), roll)
			for range columns {
				fmt.Fprintf(&text, ",%v", float32(rapid.IntRange(-2000, 2000).Draw(t, "feature"))/8)
			}
			text.WriteString("\n")
		}
		table := filepath.Join(dir, "events-events.csv") // what is exported is called so
		require.NoError(t, os.WriteFile(table, []byte(text.String()), 0o666))
		idType := "int"
		if ids[0] == "ann" {
			idType = "text"
		}
		args := []string{"--header", "yes", "--src", "a", "--dst", "b", "--time", "when", "--id-type", idType}
		args = append(args, rapid.SampledFrom([]string{"--bipartite", "--one-id-space"}).Draw(t, "spaces"), "--order",
			rapid.SampledFrom([]string{"original", "degree"}).Draw(t, "order"), "--dtype", rapid.SampledFrom([]string{"f16", "f32"}).Draw(t, "dtype"))
		if rapid.Bool().Draw(t, "labelled") {
			args = append(args, "--label", "what")
		}
		if rapid.Bool().Draw(t, "parted") {
			args = append(args, "--part", "roll")
		}
		if columns > 0 {
			args = append(args, "--edge-features", fmt.Sprintf("6-%d", 5+columns))
		}
		if slices.Contains(args, "--one-id-space") && ids[0] == "0" && rapid.Bool().Draw(t, "counted") {
			args = append(args, "--node-count", "9")
		}
		d := ingested(t, table, filepath.Join(dir, "a.gnn"), args)
		defer d.Close()
		out := filepath.Join(dir, "out")
		rep, err := Export(context.Background(), d, out, Options{FS: storetest.NoSync})
		require.NoError(t, err)
		require.Equal(t, Parquet, rep.Format)
		require.Empty(t, rep.Skipped)
		require.EqualValues(t, n, rep.Streams[0].Events)
		again := ingested(t, filepath.Join(out, rep.Streams[0].File), filepath.Join(dir, "b.gnn"), rep.Streams[0].Ingest)
		defer again.Close()
		require.Equal(t, d.Manifest().Streams, again.Manifest().Streams)
		require.Equal(t, d.Manifest().Seal, again.Manifest().Seal)
	})
}

// happened is a stream with all that one may have, and nodes without an event.
func happened(t *testing.T) *store.Dataset {
	spec := storetest.StreamSpec{
		Users: 5, Items: 4, Dim: 3, Row: func(event int) []float32 { return []float32{float32(event), 0.1, -math.MaxFloat32} },
		Negatives: func(int) []store.NodeID { return []store.NodeID{1} }, Classes: 2,
		NodeLabels: []storetest.NodeLabel{{Node: 1, Time: 2}}, LabelSplit: store.StreamSplit{Name: "given", Train: 1},
		Split: store.StreamSplit{Name: "given", Train: 20, Valid: 5, Test: 5}, TimeScale: 0.1,
	}
	for i := range 30 {
		spec.Src, spec.Dst, spec.Times = append(spec.Src, uint32(i%4)), append(spec.Dst, uint32(i%3)), append(spec.Times, float64(i/2))
		spec.Labels = append(spec.Labels, int32(i%3-1))
	}
	d, err := store.Open(storetest.BuildStream(t, spec))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

// TestStreamLeft: what a table of events cannot have is said, and the rest is as it was.
func TestStreamLeft(t *testing.T) {
	d, dir := happened(t), t.TempDir()
	out := filepath.Join(dir, "out")
	rep, err := Export(t.Context(), d, out, Options{Format: Parquet})
	require.NoError(t, err)
	require.Equal(t, []string{
		"stream events: its negatives are not written", "stream events: labels that nodes have at times of their own are not written",
		"stream events: 1 nodes of type user have no event, and are in nodes-user.parquet alone",
		"stream events: 1 nodes of type item have no event, and are in nodes-item.parquet alone",
	}, rep.Skipped)
	again := ingested(t, filepath.Join(out, rep.Streams[0].File), filepath.Join(dir, "b.gnn"), rep.Streams[0].Ingest)
	defer again.Close()
	a, b := d.Events(0), again.Events(0)
	require.Equal(t, a.Times(0, 30), b.Times(0, 30))
	require.Equal(t, a.Labels(0, 30), b.Labels(0, 30))
	require.Equal(t, a.Stream.Split, b.Stream.Split)
	require.Equal(t, a.Stream.TimeScale, b.Stream.TimeScale)
	x, _ := d.StreamTable("events", "feat")
	y, _ := again.StreamTable("events", "feat")
	src, dst := a.Ends(0, 30)
	src2, dst2 := b.Ends(0, 30)
	for i := range 30 {
		require.Equal(t, x.Row(uint32(i)), y.Row(uint32(i)))
		require.Equal(t, []int64{d.IDs(0).Original(src[i]), d.IDs(1).Original(dst[i])}, []int64{again.IDs(0).Original(src2[i]), again.IDs(1).Original(dst2[i])})
	}
	for _, o := range []Options{{Format: NPY}, {Format: GraphBolt}} {
		_, err = Export(t.Context(), d, filepath.Join(dir, "no"), o)
		require.ErrorContains(t, err, "has a stream of events, which is written as parquet, and read again by ingest events; leave {format} out")
	}
	_, err = Export(t.Context(), d, filepath.Join(dir, "no"), Options{Sample: 3})
	require.ErrorContains(t, err, "{sample}: it follows the edges of relations, and "+d.Path()+" has a stream of events; leave it out")
	require.NoDirExists(t, filepath.Join(dir, "no"))
}

// TestStreamFullDisk: an export of a stream is whole or absent, and its room is looked at first.
func TestStreamFullDisk(t *testing.T) {
	d := happened(t)
	for n := int32(0); ; n++ {
		dir := t.TempDir()
		inj := errorfs.OnIndex(n)
		fsys := errorfs.Wrap(storetest.NoSync, errorfs.InjectorFunc(func(op errorfs.Op) error {
			switch op.Kind {
			case errorfs.OpCreate, errorfs.OpMkdirAll, errorfs.OpFileWrite, errorfs.OpFileSync, errorfs.OpRename:
				if inj.MaybeError(op) != nil {
					return &fs.PathError{Op: "write", Path: op.Path, Err: syscall.ENOSPC}
				}
			}
			return nil
		}))
		_, err := Export(t.Context(), d, filepath.Join(dir, "out"), Options{FS: fsys})
		if err == nil {
			require.Greater(t, n, int32(8))
			break
		}
		require.ErrorIs(t, err, syscall.ENOSPC)
		require.NotContains(t, err.Error(), "\n")
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		if len(entries) > 0 { // past the rename
			require.FileExists(t, filepath.Join(dir, "out/manifest.json"))
		}
	}
	dir := t.TempDir()
	_, err := Export(t.Context(), d, filepath.Join(dir, "out"), Options{FS: small{storetest.NoSync}})
	require.ErrorContains(t, err, "bytes and 1048576 are free; make room")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
}

// small is a disk with a MiB.
type small struct{ vfs.FS }

func (small) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: 1 << 20}, nil
}
