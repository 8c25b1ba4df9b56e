package cachetier_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/zeebo/xxh3"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/policy"
)

// resident encodes a list of resident rows of a table of n rows, with its checksum. runs are the
// numbers of rows that are absent, present, absent, …
func resident(n uint64, runs ...uint64) []byte {
	b := binary.LittleEndian.AppendUint64([]byte("gnnrows1"), n)
	for _, r := range runs {
		b = binary.AppendUvarint(b, r)
	}
	return binary.LittleEndian.AppendUint64(b, xxh3.Hash(b))
}

func TestResidentBytes(t *testing.T) {
	f := table(t, 1000, 100)
	s, err := cachetier.Open(bg, f, cachetier.Options{DeviceBytes: 2 * 200, HostBytes: 50_000, StaticBytes: 3 * 200})
	require.NoError(t, err)
	defer s.Close()
	ids := []uint32{0, 1, 2, 5, 6, 7, 200, 400, 401, 402, 999}
	require.NoError(t, s.Gather(bg, make([]byte, len(ids)*f.RowBytes()), ids))
	var b bytes.Buffer
	require.NoError(t, s.Resident(&b))
	require.Equal(t, strings.Join([]string{
		"676e6e726f777331", // magic "gnnrows1"
		"e803000000000000", // 1000 rows
		"05" + "03",        // 5 absent, with the hot rows among them; 3 present: 5 to 7
		"c001" + "01",      // 192 absent; 200
		"c701" + "03",      // 199 absent; 400 to 402
		"d404" + "01",      // 596 absent; 999
		"40b084262b57c557", // XXH3
	}, ""), hex.EncodeToString(b.Bytes()))
	require.Equal(t, resident(1000, 5, 3, 192, 1, 199, 3, 596, 1), b.Bytes())

	warm, err := cachetier.Open(bg, f, cachetier.Options{HostBytes: 50_000})
	require.NoError(t, err)
	defer warm.Close()
	require.NoError(t, warm.Restore(bg, &b))
	require.EqualValues(t, 8, warm.Stats().Warmup.Rows)
	got := make([]byte, len(ids)*f.RowBytes())
	require.NoError(t, warm.Gather(bg, got, ids))
	require.Equal(t, direct(f, ids), got)
	require.EqualValues(t, 8, warm.Stats().Tiers.Host.RowsHit)
	require.EqualValues(t, 3, warm.Stats().Disk.Rows, "0 to 2 were in other tiers")
	require.Error(t, s.Resident(brokenWriter{}))

	var kept scribbler
	require.NoError(t, s.Resident(&kept))
	require.NoError(t, warm.Restore(bg, bytes.NewReader(kept.Bytes())), "a writer that changes what it has written")
}

// scribbler overwrites the bytes that it has written, as a vfs.File may.
type scribbler struct{ bytes.Buffer }

func (s *scribbler) Write(p []byte) (int, error) {
	n, err := s.Buffer.Write(p)
	clear(p)
	return n, err
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// TestRestoreGoesOn restores the resident rows in another stack, which from then on does what the
// first one does. It holds for policies whose only state is the set of rows.
func TestRestoreGoesOn(t *testing.T) {
	f := table(t, tableRows, 100)
	rapid.Check(t, func(t *rapid.T) {
		o := drawOptions(t, f)
		groups := drawGroups(t, tableRows)
		first, err := cachetier.Open(bg, f, o)
		require.NoError(t, err)
		defer first.Close()
		_, err = runAll(first, f, groups, 2, false)
		require.NoError(t, err)
		var b bytes.Buffer
		require.NoError(t, first.Resident(&b))
		same := bytes.Clone(b.Bytes())
		second, err := cachetier.Open(bg, f, o)
		require.NoError(t, err)
		defer second.Close()
		require.NoError(t, second.Restore(bg, &b))
		if o.Policy == policy.None {
			return
		}
		require.NoError(t, second.Resident(&b))
		require.Equal(t, same, b.Bytes())
		if o.Policy == policy.LRU || o.Policy == policy.Sieve {
			return
		}
		want, err := runAll(first, f, groups, 2, false)
		require.NoError(t, err)
		got, err := runAll(second, f, groups, 2, false)
		require.NoError(t, err)
		for i := range want {
			require.Equal(t, want[i].Sub(want[0]).Disk.Rows, got[i].Sub(got[0]).Disk.Rows)
		}

		smaller, err := cachetier.Open(bg, f, cachetier.Options{HostBytes: o.HostBytes / 2})
		require.NoError(t, err)
		defer smaller.Close()
		require.NoError(t, smaller.Restore(bg, bytes.NewReader(same)))
		_, err = runAll(smaller, f, groups, 2, false)
		require.NoError(t, err)
	})
}

func TestRestoreRefuses(t *testing.T) {
	f := table(t, 1000, 100)
	s, err := cachetier.Open(bg, f, cachetier.Options{HostBytes: 50_000})
	require.NoError(t, err)
	defer s.Close()
	require.NoError(t, s.Gather(bg, make([]byte, 600), []uint32{7, 8, 9}))
	good := resident(1000, 5, 3, 992)
	wrongSum := bytes.Clone(good)
	wrongSum[len(wrongSum)-1] ^= 1
	for want, b := range map[string][]byte{
		"its head: unexpected EOF":                             nil,
		"its head: unexpected EOF ":                            good[:15],
		`it starts with "gnnrows2", not with "gnnrows1"`:       append([]byte("gnnrows2"), good[8:]...),
		"it is of a table of 1001 rows, and this one has 1000": resident(1001, 5, 3, 993),
		"a run of 996 rows from row 5 on, in a table of 1000":  resident(1000, 5, 996),
		"a run of 0 rows from row 5 on, in a table of 1000":    resident(1000, 5, 0, 1, 994),
		"a run of 18446744073709551615 rows from row 0 on":     resident(1000, 1<<64-1),
		"the run from row 8 on: unexpected EOF":                good[:18],
		"the run from row 0 on: binary: varint overflows":      append(bytes.Clone(good[:16]), bytes.Repeat([]byte{0xff}, 20)...),
		"its checksum: unexpected EOF":                         good[:len(good)-1],
		"its checksum is":                                      wrongSum,
		"more follows its end":                                 append(bytes.Clone(good), 0),
	} {
		err := s.Restore(bg, bytes.NewReader(b))
		require.ErrorIs(t, err, cachetier.ErrResident)
		require.ErrorContains(t, err, strings.TrimSpace(want))
		require.NotContains(t, err.Error(), "\n")
		require.EqualValues(t, 3, s.Stats().Tiers.Host.UsedRows, "as it was")
	}
	require.NoError(t, s.Restore(bg, bytes.NewReader(good)))
	require.EqualValues(t, 3, s.Stats().Tiers.Host.UsedRows)
}

// FuzzRestore: any input is refused, or is a set of rows that can be gathered.
func FuzzRestore(f *testing.F) {
	features := table(f, 100, 100)
	f.Add(resident(100, 5, 3, 92))
	f.Add(resident(100, 0, 100))
	f.Add(resident(100, 100))
	f.Add(resident(100, 1, 1, 1)[:18])
	s, err := cachetier.Open(bg, features, cachetier.Options{HostBytes: 10_000})
	require.NoError(f, err)
	f.Cleanup(func() { require.NoError(f, s.Close()) })
	ids := make([]uint32, 100)
	for v := range ids {
		ids[v] = uint32(v)
	}
	want := direct(features, ids)
	f.Fuzz(func(t *testing.T, b []byte) {
		err := s.Restore(bg, bytes.NewReader(b))
		if err != nil {
			require.ErrorIs(t, err, cachetier.ErrResident)
			return
		}
		got := make([]byte, len(want))
		require.NoError(t, s.Gather(bg, got, ids))
		require.True(t, bytes.Equal(want, got))
	})
}
