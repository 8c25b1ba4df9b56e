package checkpoint

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

// TestPowerLoss: what Save reported as written is there when the power fails right after it, the
// bytes and the name.
func TestPowerLoss(t *testing.T) {
	const path = "/run/c.safetensors"
	disk := vfs.NewCrashableMem()
	require.NoError(t, disk.MkdirAll("/run", 0o777))
	root, err := disk.OpenDir("/")
	require.NoError(t, err)
	require.NoError(t, root.Sync())
	for _, epoch := range []string{"1", "2"} {
		require.NoError(t, Save(disk, path, sample, map[string]string{"epoch": epoch}))
		left := disk.CrashClone(vfs.CrashCloneCfg{}) // synced writes alone
		got, meta, err := Load(left, path)
		require.NoError(t, err)
		require.Equal(t, epoch, meta["epoch"])
		require.ElementsMatch(t, sample, got)
	}
}
