package history_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/train/history"
)

// saved is a snapshot of a cache in use, with verdicts that plans do not know.
func saved(t require.TestingT) (history.Options, []byte) {
	o := history.Options{
		Seed: 3, Layers: 3, Types: 2, PGrad: 0.5, TStale: 9, Lag: 4, Start: 1, First: 1,
		Kept: []history.Kept{{Layer: 2, Slots: 21}, {Layer: 1, Type: 1, Slots: 70}},
	}
	s := newSimulation(t, o, 1)
	for s.written < 24 {
		s.plan(min(2, s.written+o.Lag-s.next), o.Layers)
		s.run()
	}
	return o, snapshot(t, s.cache)
}

// TestRestoreNamesWhatDiffers: a snapshot of another run, or of another version, is refused.
func TestRestoreNamesWhatDiffers(t *testing.T) {
	o, b := saved(t)
	for want, change := range map[string]func(o *history.Options){
		"the number of layers was 3, and is 4 now":                         func(o *history.Options) { o.Layers = 4 },
		"the number of types was 2, and is 3 now":                          func(o *history.Options) { o.Types = 3 },
		"{seed} was 3, and is 4 now":                                       func(o *history.Options) { o.Seed = 4 },
		"{p_grad} was 0.5, and is 0.25 now":                                func(o *history.Options) { o.PGrad = 0.25 },
		"{t_stale} was 9, and is 8 now\n{history_lag} was 4, and is 1 now": func(o *history.Options) { o.TStale, o.Lag = 8, 0 },
		"{history_start} was 1, and is 0 now":                              func(o *history.Options) { o.Start = 0 },
		"it has slots of 2 layers and types, and the run of 1":             func(o *history.Options) { o.Kept = o.Kept[1:] },
		"layer 2, type 0: it had 21 slots for layer 2 and type 0, and there are 22": func(o *history.Options) {
			o.Kept = []history.Kept{{Layer: 2, Slots: 22}, o.Kept[1]}
		},
		"layer 1, type 0: it had 21 slots for layer 2 and type 0, and there are 21": func(o *history.Options) {
			o.Kept = []history.Kept{{Layer: 1, Slots: 21}, o.Kept[1]}
		},
	} {
		other := o
		change(&other)
		_, err := history.Restore(other, bytes.NewReader(b))
		require.EqualError(t, err, "history: read a snapshot: "+want)
	}
	_, err := history.Restore(history.Options{}, bytes.NewReader(b))
	require.EqualError(t, err, "history: 0 layers and 0 types: at least 1 of each")
	_, err = history.Restore(o, bytes.NewReader([]byte("something that is not a snapshot")))
	require.EqualError(t, err, "history: read a snapshot: it is none: it begins with other bytes")
	older := slices.Clone(b)
	older[8] = 1
	_, err = history.Restore(o, bytes.NewReader(older))
	require.ErrorIs(t, err, history.ErrVersion)
	require.EqualError(t, err, "history: read a snapshot: another version: it has 1, and this program reads 2")
}

// TestRestoreOfDamaged: what is cut short or longer is refused, and so is any number that does not
// fit the others. What is read is a state like any other, and goes on.
func TestRestoreOfDamaged(t *testing.T) {
	o, b := saved(t)
	for n := range len(b) {
		_, err := history.Restore(o, bytes.NewReader(b[:n]))
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, "%d of %d bytes", n, len(b))
		if n < 20 {
			continue
		}
		for _, length := range []int{n - 20, n - 21, len(b) - 20 + 1 + n} { // and it says so
			short := slices.Clone(b)
			binary.LittleEndian.PutUint64(short[12:], uint64(length))
			_, err = history.Restore(o, bytes.NewReader(append(short, make([]byte, 1000)...)))
			require.Error(t, err)
		}
	}
	refused := 0
	for at := range len(b) {
		for _, bit := range []byte{1, 0x80} {
			damaged := slices.Clone(b)
			damaged[at] ^= bit
			refused += use(t, o, damaged)
		}
	}
	require.Greater(t, refused, len(b)/2)
}

// use restores what bytes say, goes on with it, and returns 1 if they are refused.
func use(t require.TestingT, o history.Options, b []byte) (refused int) {
	c, err := history.Restore(o, bytes.NewReader(b))
	if err != nil {
		require.LessOrEqual(t, len(err.Error()), 1000)
		return 1
	}
	again := snapshot(t, c)
	require.Equal(t, b[:len(again)], again)
	var s history.Snapshot
	s.Take(c)
	if s.Step() > 1<<31 {
		return 0
	}
	rng := rand.New(rand.NewPCG(1, 2))
	ran := &simulation{t: t, o: o, seed: rng.Uint64()}
	for step := s.Step(); step < s.Step()+2*o.Lag; step++ {
		e := c.Group(step, 1)
		for hop := range o.Layers {
			found := [][]uint32{}
			for typ := range o.Types {
				found = append(found, ran.live(step, o.Layers-1-hop, typ))
			}
			_, _, err := e.Expand(context.Background(), hop, [][][]uint32{found})
			require.NoError(t, err)
		}
		var measured []history.Measured
		for _, k := range o.Kept {
			live := ran.live(step, k.Layer, k.Type)
			measured = append(measured, history.Measured{Nodes: live, Norms: make([]float32, len(live))})
		}
		c.WriteBack(step, measured)
	}
	return 0
}

// FuzzRestore: whatever the bytes are, they are refused or are a state to go on with.
func FuzzRestore(f *testing.F) {
	o, b := saved(f)
	f.Add(b)
	f.Add(b[:len(b)-9])
	fresh, err := history.New(o)
	require.NoError(f, err)
	f.Add(snapshot(f, fresh))
	f.Fuzz(func(t *testing.T, b []byte) { use(t, o, b) })
}

// TestSnapshotWriteFails: WriteTo returns the writer's error, after any number of bytes.
func TestSnapshotWriteFails(t *testing.T) {
	o, b := saved(t)
	c, err := history.Restore(o, bytes.NewReader(b))
	require.NoError(t, err)
	var s history.Snapshot
	s.Take(c)
	mine := errors.New("mine")
	for _, room := range []int{0, 1, len(b) / 2, len(b) - 1} {
		n, err := s.WriteTo(&full{room, mine})
		require.ErrorIs(t, err, mine)
		require.EqualValues(t, room, n)
	}
}

// full takes so many bytes.
type full struct {
	room int
	err  error
}

func (f *full) Write(b []byte) (int, error) {
	n := min(len(b), f.room)
	if f.room -= n; n < len(b) {
		return n, f.err
	}
	return n, nil
}
