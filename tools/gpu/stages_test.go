package main

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A test program's failures are named, and run again alone.
func TestConformance(t *testing.T) {
	s := stage{name: "conformance", limit: 20 * time.Second, run: (*turn).conformance}
	v := newVisit(t, map[string]string{"cuda.test": `echo "    --- PASS: TestGPUConform/odd (0.00s)"; echo "--- PASS: TestGPUConform (1.00s)"`})
	o := v.one(s)
	require.Equal(t, passed, o.Result, o.Error)
	require.Equal(t, []string{"1 tests pass"}, o.Figures)

	v = newVisit(t, map[string]string{"cuda.test": `
[ "$CUDA_LAUNCH_BLOCKING" = 1 ] && { echo "--- PASS: $3"; exit; }
echo "        --- FAIL: TestGPUConform/odd/Add (0.00s)"
exit 1`})
	o = v.one(s)
	require.Equal(t, failed, o.Result)
	require.Equal(t, "1 failed: TestGPUConform/odd/Add\nTestGPUConform/odd/Add alone: passes", o.Error)

	// Tests that skip or that are not there have shown nothing.
	for _, output := range []string{"--- SKIP: TestGPUConform (0.00s)", "testing: warning: no tests to run"} {
		o = newVisit(t, map[string]string{"cuda.test": "echo '" + output + "'"}).one(s)
		require.Equal(t, failed, o.Result)
	}
}

func TestSanitizers(t *testing.T) {
	s := stage{name: "sanitizers", limit: 20 * time.Second, run: (*turn).sanitizers}
	v := newVisit(t, map[string]string{"cuda.test": "", "compute-sanitizer": `
case $2 in
memcheck) echo "========= ERROR SUMMARY: 0 errors" ;;
*) echo "========= RACECHECK SUMMARY: $(cat hazards) hazards displayed"; [ "$(cat hazards)" = 0 ] || exit 9 ;;
esac`})
	t.Setenv("PATH", v.folder+":"+os.Getenv("PATH"))
	v.env = os.Environ()
	hazards := func(n string) { require.NoError(t, os.WriteFile(v.work+"/hazards", []byte(n), 0o666)) }
	hazards("0")
	o := v.one(s)
	require.Equal(t, passed, o.Result, o.Error)
	require.Equal(t, []string{"memcheck: 0 errors", "racecheck: 0 errors"}, o.Figures)
	hazards("3")
	o = v.one(s)
	require.Equal(t, failed, o.Result)
	require.Contains(t, o.Error, "racecheck: compute-sanitizer: exit status 9")
	require.Equal(t, []string{"memcheck: 0 errors", "racecheck: 3 errors"}, o.Figures)
}
