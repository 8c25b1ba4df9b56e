package resume

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestDraw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		every := rapid.IntRange(2, 9).Draw(t, "every")
		total := rapid.IntRange(3*every, 300).Draw(t, "total")
		from := rapid.IntRange(0, total).Draw(t, "from")
		number := rapid.IntRange(1, 50).Draw(t, "number")
		owed, goesOn := rapid.Bool().Draw(t, "owed"), rapid.Bool().Draw(t, "goes on")
		p := draw(rand.New(rand.NewPCG(1, rapid.Uint64().Draw(t, "seed"))), number, owed, goesOn, from, total, every)
		if owed || number%5 == 1 || number%5 == 3 {
			require.Equal(t, checkpointWrite, p.write)
		}
		if p.step > 0 {
			require.LessOrEqual(t, p.step, total)
			require.True(t, p.step > from || from == total)
			return
		}
		require.Positive(t, p.file)
		require.False(t, !goesOn && p.write == metricsFile+".tmp", "a new run cuts no metrics back")
	})
}

// line is a line of metrics.jsonl, of about the size of real ones.
func line(updates int) string {
	return fmt.Sprintf(`{"step":{"epoch":1,"step":%d,"updates":%[1]d,"loss":0.5},"so_far":{"run":%q}}`+"\n",
		updates, strings.Repeat("x", 2000))
}

func TestLastUpdate(t *testing.T) {
	file := filepath.Join(t.TempDir(), metricsFile)
	write := func(text string) int {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		last, err := LastUpdate(file)
		require.NoError(t, err)
		return last
	}
	require.Zero(t, write(""))
	require.Zero(t, write(line(1)[:99]))
	require.Equal(t, 1, write(line(1)+line(2)[:99]))
	require.Equal(t, 1, write(line(1)+`{"epoch":{"epoch":1}}`+"\n"))
	var text string
	for i := range 200 { // more than is read
		text += line(i + 1)
	}
	require.Equal(t, 200, write(text))
	require.NoError(t, os.WriteFile(file, []byte("no JSON\n"), 0o600))
	_, err := LastUpdate(file)
	require.ErrorContains(t, err, "metrics.jsonl: invalid character")
}

// put makes a file below dir, and the directory that it is in.
func put(t *testing.T, dir, name, text string) {
	path := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

func TestLook(t *testing.T) {
	dir := t.TempDir()
	l, err := look(dir)
	require.NoError(t, err)
	require.Equal(t, &left{}, l)
	require.Equal(t, "nothing on record", l.String())

	put(t, dir, recordFile, `{"resumed": [{"updates": 5}]}`)
	put(t, dir, metricsFile, line(11)+line(12))
	put(t, dir, "checkpoints/00000005.safetensors", "")
	put(t, dir, "checkpoints/00000010.safetensors", "")
	put(t, dir, "checkpoints/00000012.safetensors.tmp", "")
	l, err = look(dir)
	require.NoError(t, err)
	require.Equal(t, "12 steps on record, checkpoints [5 10], half of checkpoints/00000012.safetensors.tmp", l.String())
	require.Equal(t, 10, l.from())
	require.True(t, l.inCheckpoint())

	// What may follow, and what may not.
	for want, c := range map[string]struct {
		resumed []int
		killed  bool
	}{
		"resumed after step 10":                  {resumed: []int{5, 10}},
		"killed again before that was on record": {resumed: []int{5}, killed: true},
		"resumed after step 5, and the newest":   {resumed: []int{5, 5}},
		"1 resumptions are on record after 1":    {resumed: []int{5}},
	} {
		said, err := l.wentOn(&left{resumed: c.resumed}, c.killed)
		if err != nil {
			said = err.Error()
		}
		require.Contains(t, said, want)
	}
	put(t, dir, "checkpoints/notes.txt", "")
	_, err = look(dir)
	require.ErrorContains(t, err, "notes.txt is no checkpoint")
}

// whole is the outcome of two epochs of 7 steps.
func whole(t *testing.T) *outcome {
	o := &outcome{}
	require.NoError(t, json.Unmarshal([]byte(`{
		"status": "done", "params_xxh3": "1c56", "losses": [0.5, 0.25], "best": {"epoch": 2, "valid_acc": 0.5}, "input_rows": 99,
		"epochs": [
			{"epoch": 1, "loss": 0.5, "steps": 7, "input_rows": 50},
			{"epoch": 2, "loss": 0.25, "valid_acc": 0.5, "steps": 7, "input_rows": 49}
		]}`), o))
	o.Files = map[string]string{"last.safetensors": "77aa"}
	for i := range o.total() {
		o.Steps = append(o.Steps, step{Epoch: 1 + i/7, Step: 1 + i%7, Updates: i + 1, Loss: 1 / float64(i+3)})
	}
	return o
}

func TestDiffers(t *testing.T) {
	require.NoError(t, whole(t).differs(whole(t)))
	for want, change := range map[string]func(*outcome){
		`params_xxh3: "1c57", want "1c56"`:              func(o *outcome) { o.ParamsXXH3 = "1c57" },
		`best: {"epoch":2,"valid_acc":null`:             func(o *outcome) { o.Best.ValidAcc = nil },
		`epoch 2: {"epoch":2,"loss":0.25`:               func(o *outcome) { o.Epochs[1].InputRows++ },
		`step no. 14 in metrics.jsonl`:                  func(o *outcome) { o.Steps[13].Loss += 1e-16 },
		`number of steps in metrics.jsonl: 13, want 14`: func(o *outcome) { o.Steps = o.Steps[:13] },
		`files: {"last.safetensors":"77ab"}`:            func(o *outcome) { o.Files["last.safetensors"] = "77ab" },
	} {
		got := whole(t)
		change(got)
		require.ErrorContains(t, got.differs(whole(t)), want)
	}
}

func TestCheckpointsAfter(t *testing.T) {
	c, want := Config{Every: 5, Keep: 3}, whole(t)
	f := func(checkpoints []int, changed []string, kept ...int) {
		l := &left{checkpoints: checkpoints}
		require.Equal(t, kept, l.checkpointsAfter(changed, c, want))
	}
	f(nil, nil, 7, 10, 14)
	f([]int{5, 7, 10}, nil, 7, 10, 14)
	f([]int{5, 7, 10, 14}, nil, 7, 10, 14)
	f([]int{5, 7}, []string{"--workers", "8", "--checkpoint-every", "3"}, 9, 12, 14)
	f([]int{5, 7}, []string{"--checkpoint-every", "100"}, 5, 7, 14)
}
