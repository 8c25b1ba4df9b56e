package cli

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// sh stands for a gnnstore that behaves as the script says.
func sh(script string) *exec.Cmd { return exec.Command("sh", "-c", script) }

func TestRefused(t *testing.T) {
	message, err := Refused(sh(`printf 'read 1 %%\rread 2 %%\n' >&2; echo 'store: out.gnn: no space left on device' >&2; exit 1`))
	require.NoError(t, err)
	require.Equal(t, "store: out.gnn: no space left on device", message)

	for script, want := range map[string]string{
		`exit 0`:                               "had to fail",
		`echo why >&2; exit 2`:                 "want exit 1: why",
		`kill -9 $$`:                           "signal: killed",
		`echo half; echo why >&2; exit 1`:      `wrote "half\n" to stdout`,
		`echo 'goroutine 1 [run]' >&2; exit 1`: "want one line",
		`exit 1`:                               "without a word",
	} {
		_, err := Refused(sh(script))
		require.ErrorContains(t, err, want, script)
	}
}

func TestJSON(t *testing.T) {
	var result struct{ A int }
	binary := Binary("sh")
	// The script sees --json as $0, after -c and itself.
	require.NoError(t, binary.JSON(t.Context(), &result, "-c", `test "$0" = --json && echo '{"a": 7}'`))
	require.Equal(t, 7, result.A)
	require.ErrorContains(t, binary.JSON(t.Context(), &result, "-c", `echo '{} {}'`), "more than one object")
	require.ErrorContains(t, binary.JSON(t.Context(), &result, "-c", `echo text`), "invalid character")
	require.ErrorContains(t, binary.JSON(t.Context(), &result, "-c", `echo why >&2; exit 1`), "exit status 1: why")
}
