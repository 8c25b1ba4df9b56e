package cachetier_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/device"
	"github.com/gnnstore/gnnstore/cachetier/policy"
	"github.com/gnnstore/gnnstore/cachetier/policy/policytest"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/kernels/kerneltest"
)

// openApart opens a stack over a table whose device region, of so many bytes, the host cannot
// address.
func openApart(t require.TestingT, f cachetier.Table, o cachetier.Options) (s *cachetier.Stack, done func()) {
	be := kernels.NewCPU(kernels.CPUOptions{Threads: 1})
	region, err := device.New(kerneltest.Remote(be), 0, device.Size(o.DeviceBytes))
	require.NoError(t, err)
	o.Region = region
	s, err = cachetier.Open(bg, f, o)
	require.NoError(t, err)
	return s, func() {
		s.Close()
		region.Close()
	}
}

// TestDynamicRows: the rows that stay on the device are as the policy's reference has it, which
// knows the 16 steps that follow. Others come. After a Reset none is there.
func TestDynamicRows(t *testing.T) {
	f := table(t, tableRows, 100)
	size := int64(f.RowBytes())
	stayed := false
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]cachetier.Policy{cachetier.LRU, cachetier.Belady}).Draw(t, "policy")
		kept, slots := rapid.IntRange(0, 40).Draw(t, "hot"), rapid.IntRange(1, 60).Draw(t, "dynamic")
		o := drawOptions(t, f)
		o.DeviceBytes, o.DynamicBytes, o.DevicePolicy = size*int64(kept+slots), size*int64(slots), kind
		o.HostBytes = max(o.HostBytes, 64<<10)
		s, done := openApart(t, f, o)
		defer done()
		device, _, _, _ := s.Layout()
		require.Equal(t, kept, device)
		oracle := policytest.New(string(kind), slots)
		hits, keeps, gone, came := int64(0), int64(0), int64(0), int64(0)
		first := s.Stats().Tiers.Device
		rows := func(ids []uint32) policytest.Rows {
			u := policytest.Rows{}
			for _, v := range ids {
				if int(v) >= kept {
					u[v] = true
				}
			}
			return u
		}
		groups, expected := drawGroups(t, tableRows), 0
		ahead := rapid.IntRange(0, 3).Draw(t, "groups ahead")
		for n, g := range groups {
			for ; expected < min(n+1+ahead, len(groups)); expected++ {
				s.Expect(groups[expected])
			}
			if rapid.IntRange(0, 9).Draw(t, "Reset") == 0 {
				s.Reset()
				oracle = policytest.New(string(kind), slots)
				expected = n + 1
				continue
			}
			later := slices.Concat(groups[n:expected]...)
			for i, ids := range g {
				var future []policytest.Rows
				for _, ids := range later[i+1 : min(i+17, len(later))] {
					future = append(future, rows(ids))
				}
				for v := range rows(ids) {
					if _, there := oracle.Held[v]; there {
						hits++
					} else {
						came++
					}
				}
				hits += int64(len(ids) - len(rows(ids)))
				c := oracle.Change(rows(ids), future, true)
				keeps, gone = keeps+int64(c.Admitted), gone+int64(c.Evicted)
			}
			for len(g) > 0 {
				w := next(t, s)
				require.NoError(t, w.Load(bg))
				for i, ids := range g[:w.Steps()] {
					require.True(t, bytes.Equal(direct(f, ids), gatherAll(t, s, w, i, ids)), "wrong rows")
				}
				w.Release()
				g = g[w.Steps():]
			}
			tiers := s.Stats().Tiers
			stay := (tiers.Device.BytesRead - first.BytesRead) / size
			require.Equal(t, []int64{hits, came, keeps, gone},
				[]int64{tiers.Device.RowsHit, tiers.Device.RowsMissed, stay, tiers.Device.Evictions})
			require.Equal(t, int64(kept+len(oracle.Held)), tiers.Device.UsedRows)
			stayed = stayed || gone > 0
		}
	})
	require.True(t, stayed)
}

// TestNoDynamicPart: rows that all lie on the device anyway, a policy that keeps nothing, too
// little memory for the index, and a region that the host addresses.
func TestNoDynamicPart(t *testing.T) {
	f := table(t, tableRows, 100)
	size := int64(f.RowBytes())
	for name, o := range map[string]cachetier.Options{
		"all":    {DeviceBytes: tableRows * size, HostBytes: 1 << 20, DevicePolicy: policy.LRU},
		"none":   {DeviceBytes: 50 * size, HostBytes: 1 << 20, DevicePolicy: policy.None, DynamicBytes: 20 * size},
		"memory": {DeviceBytes: 50 * size, HostBytes: 100, DevicePolicy: policy.Belady, DynamicBytes: 20 * size},
		"tiny":   {DeviceBytes: 50 * size, HostBytes: 1 << 20, DevicePolicy: policy.Belady, DynamicBytes: 1},
	} {
		s, done := openApart(t, f, o)
		kept, _, _, _ := s.Layout()
		require.EqualValues(t, o.DeviceBytes/size, kept, name)
		done()
	}
	o := cachetier.Options{DeviceBytes: 50 * size, HostBytes: 1 << 20, DevicePolicy: policy.LRU}
	s, err := cachetier.Open(bg, f, o)
	require.NoError(t, err)
	kept, _, _, _ := s.Layout()
	require.Equal(t, 50, kept)
	require.NoError(t, s.Close())
	s, done := openApart(t, f, o)
	defer done()
	kept, _, _, _ = s.Layout()
	require.Equal(t, 40, kept, "a fifth of the region")
	_, err = cachetier.Open(bg, f, cachetier.Options{DevicePolicy: policy.Sieve, DynamicBytes: -1, SharedBytes: -1})
	require.ErrorContains(t, err, `device policy "sieve": use none, lru or belady`)
	require.ErrorContains(t, err, "dynamic part of -1 bytes")
	require.ErrorContains(t, err, "shared room of -1 bytes")
}
