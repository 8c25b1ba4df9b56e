package run

import (
	"runtime"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store/setting"
	"github.com/gnnstore/gnnstore/train/model"
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

// TestAgain: a repeated run chooses nothing anew, and an epoch that was cut is cut again.
func TestAgain(t *testing.T) {
	flags := func(r Record) map[string]string {
		texts := map[string]string{}
		for _, c := range r.Again() {
			texts[c.Flag] = c.Text
		}
		return texts
	}
	r := Record{Options: DefaultOptions()}
	got := flags(r)
	require.Equal(t, "sage", got["model"])
	require.Equal(t, "128", got["hidden"], "the data may choose another")
	require.Equal(t, "0", got["epoch-steps"])
	require.NotContains(t, got, "patience", "it is the default")
	require.NotContains(t, got, "n3", "it is of links")

	r.Options.EpochSteps, r.AutoEpochs = 500, &AutoEpochs{Steps: 500}
	require.Equal(t, "500", flags(r)["epoch-steps"])
	r.AutoEpochs.Whole = 2136
	require.NotContains(t, flags(r), "epoch-steps")
	require.NotContains(t, flags(r), "eval-every")

	r = Record{Options: DefaultStreamOptions(model.TGN), AutoStaleness: &AutoStaleness{K: 3}}
	r.Options.Staleness = Auto
	require.Equal(t, "3", flags(r)["staleness"])
}
