package stream

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/temporal"
)

// requireBlends compares the blended rows of a batch with the rule, by the times in the state that
// the batch sees. Each of these rows had an event.
func requireBlends(t *testing.T, tr *core, b *temporal.Batch, state func(place uint32) (last float64, met bool)) {
	t.Helper()
	similar, err := temporal.NewSimilar(tr.events)
	require.NoError(t, err)
	defer similar.Close()
	found := temporal.Blends{Random: tr.Hooks.RandomPartners, FirstDst: uint32(tr.events.Place(0))}
	var roots, rows []uint32
	var times, all []float64
	for _, row := range b.Roots {
		roots, times = append(roots, b.Nodes[b.RowNode[row]]), append(times, b.RowTime[row])
	}
	for v := range uint32(tr.events.Places()) {
		last, met := state(v)
		if !met {
			last = -1
		}
		all = append(all, last)
	}
	found.Find(roots, times, all, func(place uint32) []uint32 { return similar.Of(place, b.From) })
	for _, root := range found.Rows {
		rows = append(rows, b.Roots[root])
	}
	require.Equal(t, rows, slices.Clone(b.Blended))
	var of []uint32
	for _, node := range b.Similar {
		of = append(of, b.Nodes[node])
	}
	require.Equal(t, append([]uint32{}, found.Nodes...), append([]uint32{}, of...))
	for _, row := range b.Blended {
		_, met := state(b.Nodes[b.RowNode[row]])
		require.True(t, met, "a row of a node without an event is blended")
	}
}

// auditBlends compares the memories that a batch blends, read from the state that it sees and from
// fresh state.
func auditBlends(sums *run.MitigationSums, o run.Options, r temporal.Record, b *temporal.Batch, seen func(v uint32) []byte, fresh map[uint32][]byte) {
	memory := func(record []byte) []float32 {
		x := make([]float32, len(r.Memory(record))/4)
		_, err := binary.Decode(r.Memory(record), binary.LittleEndian, x)
		if err != nil {
			panic(err)
		}
		return x
	}
	n := len(b.Blended)
	for j := range min(n, o.MitigateAudit) {
		i := j * n / min(n, o.MitigateAudit)
		v := b.Nodes[b.RowNode[b.Blended[i]]]
		was, is := memory(seen(v)), memory(seen(v))
		var similar [][]float32
		for _, node := range b.Similar[b.BlendStart[i]:b.BlendStart[i+1]] {
			similar = append(similar, memory(seen(b.Nodes[node])))
		}
		temporal.Blend(is, similar, o.Mitigate)
		sums.Add(is, was, memory(fresh[v]), r.Time(seen(v)) != r.Time(fresh[v]))
	}
}

// exact is drifting between nodes of one type, with features that float16 and float32 hold exactly.
// With elem 0 there are no features.
func exact(t testing.TB, events int, elem store.Elem) *store.Dataset {
	s := driftingSpec(events, 0)
	for i := range s.Dst {
		s.Dst[i] += users
	}
	row := s.Row
	s.Users, s.Items, s.Elem = users+items, 0, elem
	if s.NodeDim = 3; elem == 0 {
		s.Dim, s.NodeDim = 0, 0
	}
	s.Row = func(event int) []float32 {
		x := slices.Clone(row(event))
		for c := range x {
			x[c] = float32(math.Round(8*float64(x[c]))) / 8
		}
		return x
	}
	s.NodeRow = func(v int) []float32 { return []float32{float32(v%7) / 8, float32(v % 5), -float32(v%3) / 4} }
	ds, err := store.Open(storetest.BuildStream(t, s))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, ds.Close()) })
	return ds
}

// TestMitigateFeatures: whatever the type of features and the choice of partners, a run equals the
// plain loop, with any budget and after a resume. Types that hold the same features give the same
// result.
func TestMitigateFeatures(t *testing.T) {
	storetest.Long(t)
	for _, kind := range model.TemporalKinds {
		for _, random := range []uint64{0, 7} {
			var of [3]outcome
			for i, elem := range []store.Elem{0, store.F16, store.F32} {
				name := fmt.Sprintf("%s, features of type %v, random partners %d", kind, elem, random)
				ds, o, h := exact(t, 600, elem), options(kind), run.Hooks{RandomPartners: random}
				o.Staleness, o.WarmEvents, o.Mitigate, o.MitigateAudit = 3, 70, 0.5, i
				r := run1(t, ds, o, h)
				losses, params, want := plainLoop(t, ds, o, h)
				require.Equal(t, losses, r.Losses, name)
				require.Equal(t, params, r.ParamsXXH3, name)
				require.Equal(t, want.Blended, r.Stream.Mitigation.Blended, name)
				require.Equal(t, want.Audit, r.Stream.Mitigation.Audit, name)
				require.Positive(t, want.Blended, name)
				require.Equal(t, i > 0, want.Audit != nil, name)
				of[i] = outcomeOf(r)

				o.Cache.HostBytes, o.Workers, o.Window, o.Publish, o.CheckpointEvery = 0, 2, 3, run.Late, 3
				disk := vfs.NewMem()
				for done := false; !done; {
					ctx, cancel := context.WithCancel(t.Context())
					left := 7
					some := h
					some.Step = func(int, int, int, float64) {
						if left--; left == 0 {
							cancel()
						}
					}
					r, err := runOn(ctx, disk, "/run", ds, o, some)
					cancel()
					require.NoError(t, err, name)
					if done = r.Status == run.Done; done {
						require.Equal(t, of[i], outcomeOf(r), name)
						require.Equal(t, want.Blended, r.Stream.Mitigation.Blended, name)
						require.Equal(t, want.Audit, r.Stream.Mitigation.Audit, name)
					}
				}
			}
			require.NotEqual(t, of[0].params, of[1].params)
			require.Equal(t, of[1], of[2], kind)
		}
	}
}

// TestMitigate: memories are blended as in the plain loop, with any budget. With Mitigate
// 1 nothing changes.
func TestMitigate(t *testing.T) {
	storetest.Long(t)
	ds := drifting(t, 700)
	for _, kind := range model.TemporalKinds {
		for _, k := range []int{1, 2, 3} {
			o := options(kind)
			o.Staleness, o.WarmEvents = k, 130
			off := outcomeOf(run1(t, ds, o, run.Hooks{}))
			o.Mitigate = 0.5
			r := run1(t, ds, o, run.Hooks{})
			require.NotEqual(t, off.params, r.ParamsXXH3, "%s, staleness %d", kind, k)
			m := r.Stream.Mitigation
			require.Positive(t, m.Blended)
			require.Less(t, m.Share(), 0.02, "99 in 100 are recent")
			losses, params, want := plainLoop(t, ds, o, run.Hooks{})
			require.Equal(t, losses, r.Losses, "%s, staleness %d", kind, k)
			require.Equal(t, params, r.ParamsXXH3, "%s, staleness %d", kind, k)
			require.Equal(t, want.Blended, m.Blended)

			if k == 2 { // it lies between the others
				continue
			}
			same := outcomeOf(r)
			o.Cache.HostBytes, o.Workers, o.Window, o.Publish = 0, 2, 3, run.Late
			require.Equal(t, same, outcomeOf(run1(t, ds, o, run.Hooks{}, internal{delay: late})), "%s, staleness %d", kind, k)
			o.Mitigate = 1
			require.Equal(t, off, outcomeOf(run1(t, ds, o, run.Hooks{})), "%s, staleness %d", kind, k)
		}
	}
}

// TestMitigateAudit: an audit changes no result. It compares all blended memories, or some of them.
// After a resume it compares nothing until it knows the hidden steps.
func TestMitigateAudit(t *testing.T) {
	ds := drifting(t, 900)
	for _, kind := range model.TemporalKinds {
		o := options(kind)
		o.Staleness, o.Mitigate, o.CheckpointEvery = 4, 0.5, 3
		want := outcomeOf(run1(t, ds, o, run.Hooks{}))
		o.MitigateAudit = 1000
		r := run1(t, ds, o, run.Hooks{})
		require.Equal(t, want, outcomeOf(r), kind)
		all := *r.Stream.Mitigation.Audit
		require.Equal(t, r.Stream.Mitigation.Blended, all.Nodes, kind)
		require.Positive(t, all.OutOfDate, kind)
		require.Less(t, all.OutOfDate, all.Nodes, kind)

		disk, o := vfs.NewMem(), o
		for _, most := range []int{0, 1000, 1000} {
			ctx, cancel := context.WithCancel(t.Context())
			left := 5
			o.MitigateAudit = most
			r, err := runOn(ctx, disk, "/run", ds, o, run.Hooks{Step: func(int, int, int, float64) {
				if left--; left == 0 && most == 0 {
					cancel()
				}
			}})
			cancel()
			require.NoError(t, err)
			if r.Status == run.Done {
				require.Equal(t, want, outcomeOf(r), kind)
				require.Less(t, r.Stream.Mitigation.Audit.Nodes, all.Nodes, kind)
				break
			}
			require.Nil(t, r.Stream.Mitigation.Audit)
		}
	}
	o := options(model.TGN)
	for _, bad := range []struct {
		keep float64
		most int
		says string
	}{{0.5, -1, "{mitigate_audit} -1: from 0"}, {0, 5, "{mitigate_audit} 5: it goes with {mitigate}"}, {1, 5, "{mitigate_audit} 5: it goes with {mitigate}"}} {
		o.Mitigate, o.MitigateAudit = bad.keep, bad.most
		require.ErrorContains(t, o.Validate(), bad.says)
	}
}

// TestResumeByAnotherBlendRule: a run that blended memories by another rule is refused, and stays
// as it is. One that blends none goes on.
func TestResumeByAnotherBlendRule(t *testing.T) {
	ds := drifting(t, 400)
	for _, mitigate := range []float64{0, 0.5, 1} {
		for _, rule := range []int{0, temporal.BlendRule, temporal.BlendRule + 1} {
			blends := mitigate == 0.5
			if !blends && rule > 0 {
				continue // a run that blends nothing has no rule on record
			}
			o, disk := options(model.TGN), vfs.NewMem()
			o.Staleness, o.Mitigate, o.CheckpointEvery = 2, mitigate, 2
			want := outcomeOf(run1(t, ds, o, run.Hooks{}))
			ctx, cancel := context.WithCancel(t.Context())
			r, err := runOn(ctx, disk, "/run", ds, o, run.Hooks{Step: func(_, step, _ int, _ float64) {
				if step == 4 {
					cancel()
				}
			}})
			require.NoError(t, err)
			require.Equal(t, run.Interrupted, r.Status)

			dir, record, err := run.OpenOn(disk, "/run")
			require.NoError(t, err)
			require.Equal(t, blends, record.BlendRule == temporal.BlendRule)
			record.BlendRule, record.Version = rule, "v1.2"
			require.NoError(t, dir.WriteRecord(record))
			require.NoError(t, dir.Close())
			before := files(t, disk)
			got, err := runOn(t.Context(), disk, "/run", ds, o, run.Hooks{})
			if blends && rule != temporal.BlendRule {
				require.EqualError(t, err, fmt.Sprintf("resume /run: {mitigate} 0.5: it blends memories by rule %d, and this version by rule 2, so that its "+
					"results would differ; begin another run with {run}, or go on with gnnstore v1.2", max(rule, 1)))
				require.Equal(t, before, files(t, disk))
				continue
			}
			require.NoError(t, err)
			require.Equal(t, want, outcomeOf(got))
		}
	}
}

// files returns the names and sizes of the files in a run.
func files(t *testing.T, fsys vfs.FS) (all []string) {
	for _, in := range []string{"/run", "/run/" + run.CheckpointDir} {
		names, err := fsys.List(in)
		require.NoError(t, err)
		slices.Sort(names)
		for _, name := range names {
			fi, err := fsys.Stat(in + "/" + name)
			require.NoError(t, err)
			if all = append(all, name); !fi.IsDir() {
				all[len(all)-1] += fmt.Sprintf(" %d", fi.Size())
			}
		}
	}
	return all
}
