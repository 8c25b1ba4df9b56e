package graph

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/checkpoint"
	"github.com/gnnstore/gnnstore/train/run"
)

// sumAt is where the checksum of a run.json begins.
func sumAt(text []byte) int { return bytes.LastIndex(text, []byte(",\n  \"xxh3\"")) }

// readFile is a file of a file system in memory.
func readFile(fsys vfs.FS, path string) ([]byte, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(f)
	return b, errors.Join(err, f.Close())
}

// checkpointsOf are the names of the checkpoints of /run, within it, the oldest first.
func checkpointsOf(t *testing.T, fsys vfs.FS) []string {
	names, err := fsys.List(filepath.Join("/run", run.CheckpointDir))
	require.NoError(t, err)
	slices.Sort(names)
	for i, name := range names {
		names[i] = filepath.Join(run.CheckpointDir, name)
	}
	return names
}

// openFails tries to go on with the run in /run, and wants that refused in one line.
func openFails(t *testing.T, disk vfs.FS) error {
	t.Helper()
	d, _, err := run.OpenOn(disk, "/run")
	if err == nil {
		require.NoError(t, d.Close())
	}
	require.Error(t, err)
	require.NotContains(t, err.Error(), "\n")
	return err
}

// TestEveryByteOfRecord flips bits all over run.json, and each of its last bytes, with checkpoints
// beside it and before the first one. Each is found; without the file, the options are the
// checkpoint's.
func TestEveryByteOfRecord(t *testing.T) {
	ds := open(t, storetest.Communities(600, 4, 8, 16, 2))
	want := trained(t, ds, long())
	disk := half(t, ds, long())
	begun := vfs.NewMem()
	_, err := runOn(context.Background(), begun, ds, long(), run.Hooks{})
	require.NoError(t, err)
	require.NoError(t, begun.RemoveAll("/run/checkpoints"))
	stride := 5
	if testing.Short() {
		stride = 41
	}
	for fsys, remedy := range map[vfs.FS]string{
		disk:  "remove run.json, and {resume} takes the options from checkpoints/00000012.safetensors",
		begun: "restore it, or begin another run with {run}",
	} {
		whole, err := readFile(fsys, "/run/run.json")
		require.NoError(t, err)
		for i := range whole {
			if i%stride != 0 && i < sumAt(whole) {
				continue
			}
			edit(t, fsys, run.RecordFile, func([]byte) []byte {
				b := bytes.Clone(whole)
				b[i] ^= 1 << (i % 8)
				return b
			})
			err := openFails(t, fsys)
			require.ErrorContains(t, err, "run /run: ", i)
			require.ErrorContains(t, err, "run.json", i)
			require.ErrorContains(t, err, "; "+remedy, i)
		}
		edit(t, fsys, run.RecordFile, func([]byte) []byte { return whole })
	}
	require.NoError(t, disk.Remove("/run/run.json"))
	_, err = run.CreateOn(disk, "/run")
	require.ErrorContains(t, err, "it holds a run; continue it with {resume}")
	d, record, err := run.OpenOn(disk, "/run")
	require.NoError(t, err)
	require.NoError(t, d.Close())
	var notes []string
	got, err := runOn(context.Background(), disk, ds, record.Options, run.Hooks{Note: func(s string) { notes = append(notes, s) }})
	require.NoError(t, err)
	require.Equal(t, "/run/run.json is missing; the options are those of checkpoints/00000012.safetensors", notes[0])
	sameRun(t, want, got)
	_, err = readFile(disk, "/run/run.json")
	require.NoError(t, err)
}

// TestEveryPartOfCheckpoint flips bits all over the newest checkpoint: each is found, and the run
// goes on from the one before it, to the same end.
func TestEveryPartOfCheckpoint(t *testing.T) {
	storetest.Long(t)
	ds := open(t, storetest.Communities(600, 4, 8, 16, 2))
	want := trained(t, ds, long())
	const newest = "checkpoints/00000012.safetensors"
	flips := 40
	if testing.Short() {
		flips = 4
	}
	for i := range flips {
		disk := half(t, ds, long())
		var at int
		edit(t, disk, newest, func(b []byte) []byte { // checkpoints hold times, and differ in length by their digits
			at = i * (len(b) - 1) / (flips - 1)
			b[at] ^= 1 << (i % 8)
			return b
		})
		var notes []string
		got, err := runOn(context.Background(), disk, ds, long(), run.Hooks{Note: func(s string) { notes = append(notes, s) }})
		require.NoError(t, err, at)
		require.Contains(t, notes[0], newest, at)
		require.Contains(t, notes[0], "; passing it over", at)
		sameRun(t, want, got, at)
	}
}

// TestRecordDiffers: a run.json with other options than the checkpoint is refused, each named with
// both values, whether its checksum was made to fit or not; options that may change are free to.
func TestRecordDiffers(t *testing.T) {
	ds := open(t, storetest.Communities(600, 4, 8, 16, 2))
	disk := half(t, ds, long())
	text, err := readFile(disk, "/run/run.json")
	require.NoError(t, err)
	change := func(old, new string) {
		edit(t, disk, run.RecordFile, func([]byte) []byte {
			require.Contains(t, string(text), old)
			return []byte(strings.Replace(string(text), old, new, 1))
		})
	}
	change(`"lr": 0.03`, `"lr": 0.003`)
	require.EqualError(t, openFails(t, disk), "run /run: {lr} is 0.003 in run.json and 0.03 in the checkpoint; remove run.json, "+
		"and {resume} takes the options from checkpoints/00000012.safetensors")
	change(`"epochs": 5`, `"epochs": 4`)
	require.EqualError(t, openFails(t, disk), "run /run: run.json is damaged: its checksum differs; remove run.json, "+
		"and {resume} takes the options from checkpoints/00000012.safetensors")

	rewrite := func(change func(r *run.Record)) {
		r, err := run.DecodeRecord(text)
		require.NoError(t, err)
		change(r)
		b, err := r.Encode()
		require.NoError(t, err)
		edit(t, disk, run.RecordFile, func([]byte) []byte { return b })
	}
	rewrite(func(r *run.Record) { r.Options.Dropout, r.Options.Optim.WeightDecay, r.Options.Workers = 0.25, 0.5, 9 })
	require.EqualError(t, openFails(t, disk), "run /run: {dropout} is 0.25 in run.json and 0.5 in the checkpoint, "+
		"{weight_decay} is 0.5 in run.json and 0 in the checkpoint; remove run.json or checkpoints/00000012.safetensors, "+
		"whichever is not of this run")
	rewrite(func(r *run.Record) { r.Options.Workers, r.Options.Epochs = 9, 6 })
	d, r, err := run.OpenOn(disk, "/run")
	require.NoError(t, err)
	require.NoError(t, d.Close())
	require.Equal(t, 6, r.Options.Epochs)
}

// TestResumeEarlierVersion: one without a checksum in run.json and without options in checkpoints
// goes on, and is told.
func TestResumeEarlierVersion(t *testing.T) {
	ds := open(t, storetest.Communities(600, 4, 8, 16, 2))
	want := trained(t, ds, long())
	disk := half(t, ds, long())
	names := checkpointsOf(t, disk)
	for _, name := range names {
		tensors, meta, err := checkpoint.Load(disk, filepath.Join("/run", name))
		require.NoError(t, err)
		delete(meta, run.RecordKey)
		require.NoError(t, checkpoint.Save(disk, filepath.Join("/run", name), tensors, meta))
	}
	edit(t, disk, run.RecordFile, func(b []byte) []byte {
		return append(b[:sumAt(b)], "\n}\n"...)
	})
	var notes []string
	got, err := runOn(context.Background(), disk, ds, long(), run.Hooks{Note: func(s string) { notes = append(notes, s) }})
	require.NoError(t, err)
	require.Contains(t, notes[0], "the checkpoint is of an earlier version, which kept no options in it")
	sameRun(t, want, got)

	disk = half(t, ds, long())
	for _, name := range names {
		edit(t, disk, name, func([]byte) []byte { return nil })
	}
	require.NoError(t, disk.Remove("/run/run.json"))
	require.EqualError(t, openFails(t, disk), "run /run: run.json is missing, and no checkpoint has the options of the run; "+
		"restore it, or begin another run with {run}")
}
