package train

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/store/storetest"
)

// TestCostsOnRecord: what reading was found to cost is what a run goes on with.
func TestCostsOnRecord(t *testing.T) {
	ds := open(t, storetest.Communities(300, 3, 6, 8, 3))
	o := small()
	fs := half(t, ds, o)
	d, record, err := openRun(fs, "/run")
	require.NoError(t, err)
	require.NoError(t, d.Close())
	require.Positive(t, record.Costs.BytesPerSecond)
	record.Costs = disk.Costs{SecondsPerRead: 1e-3, BytesPerSecond: 5e8}
	require.NoError(t, d.writeJSON(recordFile, record))

	d, record, err = openRun(fs, "/run")
	require.NoError(t, err)
	require.NoError(t, d.Close())
	made, err := newTrainer(ds, record.Options, Hooks{})
	require.NoError(t, err)
	require.Equal(t, record.Costs, made.topo.Costs())
	require.Equal(t, record.Costs, made.disk.Costs)
	made.close()

	edit(t, fs, recordFile, func(b []byte) []byte {
		return bytes.Replace(b, []byte(`"seconds_per_read": 0.001`), []byte(`"seconds_per_read": -1`), 1)
	})
	_, _, err = openRun(fs, "/run")
	require.ErrorContains(t, err, "run.json is damaged: costs of -1 seconds a read")
}
