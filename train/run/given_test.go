package run

import (
	"runtime"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store/setting"
)

// Beside a GPU all processors but two draw batches, unless --workers or --memory is given.
func TestWorkersBesideGPU(t *testing.T) {
	f := func(want int, args ...string) {
		t.Helper()
		o := DefaultOptions()
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		given := setting.Bind(flags, Table, &o)
		require.NoError(t, flags.Parse(args))
		_ = o.Complete(given) // this build may lack the device
		require.Equal(t, want, o.Workers, args)
	}
	all := workersBesideGPU(runtime.GOMAXPROCS(0))
	f(2)
	f(2, "--device", "cpu")
	f(all, "--device", "cuda")
	f(5, "--device", "cuda", "--workers", "5")
	f(2, "--device", "cuda", "--memory", "1GiB")
	require.Equal(t, 2, workersBesideGPU(1))
	require.Equal(t, 14, workersBesideGPU(16))
	require.Equal(t, 64, workersBesideGPU(256))
}
