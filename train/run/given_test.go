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

// TestGivenZeros: a 0 that is given for an option is refused if 0 stands for the default.
func TestGivenZeros(t *testing.T) {
	f := func(want string, args ...string) {
		t.Helper()
		o := DefaultOptions().ForFlags()
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		given := setting.Bind(flags, Table, &o)
		require.NoError(t, flags.Parse(args))
		err := o.Complete(given)
		if want == "" {
			require.NoError(t, err)
			return
		}
		require.EqualError(t, err, want)
	}
	rotate := []string{"--task", "link", "--layers", "0", "--decoder", "rotate"}
	f("", rotate...)
	f("", append(rotate, "--margin", "3", "--chunk", "1")...)
	f("{margin} 0: above 0; leave it out for 9", append(rotate, "--margin", "0")...)
	f("{chunk} 0: at least 1; leave it out for 100", append(rotate, "--chunk", "0")...)
}
