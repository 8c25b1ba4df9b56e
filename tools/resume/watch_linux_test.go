package resume

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestWhen plays a run that writes its files as train does, and waits for each kind of point.
func TestWhen(t *testing.T) {
	for name, c := range map[string]struct {
		at   point
		last string // the file that the run wrote last when the point was there
	}{
		"a step":                      {point{step: 2}, "second line"},
		"the first checkpoint begins": {point{write: checkpointWrite, file: 1}, "checkpoints/00000001.safetensors.tmp"},
		"another checkpoint grows":    {point{write: checkpointWrite, file: 2, changes: 1}, "checkpoints/00000002.safetensors.tmp"},
		"a checkpoint stands":         {point{write: "checkpoints/*.safetensors", file: 1}, "checkpoints/00000001.safetensors"},
		"the result begins":           {point{write: resultFile + ".tmp", file: 1}, "result.json.tmp"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			if c.at.file > 1 { // what comes and goes in a directory that is new may escape the watch
				require.NoError(t, os.MkdirAll(filepath.Join(dir, checkpointDir), 0o700))
			}
			reached := make(chan struct{})
			stop, err := when(dir, c.at, func() error { close(reached); return nil })
			require.NoError(t, err)
			for _, play := range []struct {
				name string
				do   func()
			}{
				{"metrics.jsonl", func() { put(t, dir, metricsFile, "") }},
				{"first line", func() { put(t, dir, metricsFile, line(1)) }},
				{"checkpoints/00000001.safetensors.tmp", func() { put(t, dir, "checkpoints/00000001.safetensors.tmp", "half") }},
				{"checkpoints/00000001.safetensors", func() { move(t, dir, "checkpoints/00000001.safetensors") }},
				{"second line", func() { put(t, dir, metricsFile, line(1)+line(2)) }},
				{"checkpoints/00000002.safetensors.tmp", func() { put(t, dir, "checkpoints/00000002.safetensors.tmp", "half") }},
				{"checkpoints/00000002.safetensors", func() { move(t, dir, "checkpoints/00000002.safetensors") }},
				{"result.json.tmp", func() { put(t, dir, "result.json.tmp", "{}") }},
			} {
				play.do()
				if play.name == c.last {
					<-reached
					break
				}
				select {
				case <-reached:
					t.Fatalf("reached at %s, want %s", play.name, c.last)
				default:
				}
			}
			require.NoError(t, stop())
		})
	}
}

func move(t *testing.T, dir, name string) {
	require.NoError(t, os.Rename(filepath.Join(dir, name+".tmp"), filepath.Join(dir, name)))
}

// TestWhenNever ends the wait for a point that does not come.
func TestWhenNever(t *testing.T) {
	stop, err := when(t.TempDir(), point{step: 1}, func() error { t.Error("reached"); return nil })
	require.NoError(t, err)
	require.NoError(t, stop())
}
