package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTableFits: every mutant's text is where the table says, once, and what it breaks is said.
func TestTableFits(t *testing.T) {
	seen := map[string]bool{}
	for _, table := range tables {
		for _, m := range table {
			source, err := os.ReadFile(filepath.Join("../..", m.file))
			require.NoError(t, err, m.id)
			changed, err := m.apply(source)
			if err != nil {
				t.Errorf("%s: %v", m.id, err) // and the others that a change made stale
				continue
			}
			require.NotEqual(t, source, changed, m.id)
			require.NotEmpty(t, m.breaks, m.id)
			require.NotEmpty(t, m.tests, m.id)
			_, err = regexp.Compile(m.tests)
			require.NoError(t, err, m.id)
			require.False(t, seen[m.id], "%s stands there twice", m.id)
			seen[m.id] = true
		}
	}
	require.Greater(t, len(seen), 60)
}

const source = `package adder

// Sum adds: a + b.
func Sum(a, b int) int { return a + b }

// box is a box.
type box[T any] struct{ n int }

func (x *box[T]) sum(a int) int { return x.n + a }

var names = []string{"a + b"}

func twice(a, b int) int { return a + b + a + b }
`

// TestApply: an edit is within its declaration, comments left out, and a text that is not there
// once is stale.
func TestApply(t *testing.T) {
	for _, c := range []struct {
		in, old, new string
		want, stale  string
	}{
		{in: "Sum", old: "a + b", new: "a - b", want: "func Sum(a, b int) int { return a - b }"},
		{in: "box.sum", old: "x.n + a", new: "a", want: "func (x *box[T]) sum(a int) int { return a }"},
		{in: "names", old: `"a + b"`, new: `""`, want: `var names = []string{""}`},
		{in: "Sum", old: "a * b", stale: `adder.go, Sum: "a * b" stands there 0 times, not once`},
		{in: "twice", old: "a + b", stale: `adder.go, twice: "a + b" stands there 2 times, not once`},
		{in: "sum", old: "a + b", stale: "adder.go has 0 declarations called sum"},
	} {
		changed, err := mutant{file: "adder.go", in: c.in, old: c.old, new: c.new}.apply([]byte(source))
		if c.stale != "" {
			require.ErrorIs(t, err, errStale)
			require.ErrorContains(t, err, c.stale)
			continue
		}
		require.NoError(t, err)
		require.Contains(t, string(changed), c.want)
		require.Contains(t, string(changed), "// Sum adds: a + b.")
		require.Len(t, changed, len(source)-len(c.old)+len(c.new))
	}
}

// TestRun tries mutants of a small module: what is killed, survives, is stale or does not compile
// is told, and the module's files stay as they are.
func TestRun(t *testing.T) {
	root := t.TempDir()
	files := map[string]string{
		"go.mod":        "module adder\n\ngo 1.25\n",
		"adder.go":      source,
		"adder_test.go": "package adder\n\nimport \"testing\"\n\nfunc TestSum(t *testing.T) {\n\tif Sum(2, 3) != 5 {\n\t\tt.Fatal(\"no sum\")\n\t}\n}\n\nfunc TestNothing(*testing.T) {}\n",
	}
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o666))
	}
	sum := mutant{file: "adder.go", in: "Sum", old: "a + b", new: "a - b", breaks: "sums are differences"}
	all := []mutant{sum, sum, sum, sum}
	all[0].id, all[0].tests = "all-run-where-the-listed-pass", "TestNothing"
	all[1].id, all[1].new = "survivor", "b + a"
	all[2].id, all[2].old = "old-text", "a * b"
	all[3].id, all[3].new = "no-go", "a +"
	var out bytes.Buffer
	err := run(context.Background(), &out, root, all, options{timeout: time.Minute})
	require.ErrorContains(t, err, "3 of 4 mutants are not killed")
	for _, want := range []string{
		"4 of 4 mutants\n", `all-run-where-the-listed-pass killed +\d+\.\d s  TestSum\n`,
		`survivor +SURVIVED`, "    adder.go, Sum: sums are differences\n", `old-text +STALE .*"a \* b" stands there 0 times`,
		`no-go +DOES NOT COMPILE .*s  \S*adder.go:4:\d+: `, "1 killed, 1 survived, 1 stale, 1 do not compile\n$",
	} {
		require.Regexp(t, want, out.String())
	}
	for name, text := range files {
		got, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		require.Equal(t, text, string(got))
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorContains(t, run(ctx, &out, root, all, options{timeout: time.Minute}), "interrupted")
}

func TestChoose(t *testing.T) {
	var all []mutant
	for _, id := range "abcdefghijkl" {
		all = append(all, mutant{id: string(id), file: "train/graph/loop.go"})
	}
	pick := func(o options) (ids string) {
		chosen, err := choose(all, o)
		require.NoError(t, err)
		for _, m := range chosen {
			ids += m.id
		}
		return ids
	}
	require.Equal(t, "abcdefghijkl", pick(options{}))
	require.Equal(t, "ck", pick(options{only: "^[ck]$"}))
	require.Equal(t, "abcdefghijkl", pick(options{only: "loop"}))
	some := pick(options{n: 5, seed: 7})
	require.Len(t, some, 5)
	require.Equal(t, some, pick(options{n: 5, seed: 7}), "a seed is a choice")
	require.NotEqual(t, some, pick(options{n: 5, seed: 8}))
	require.Equal(t, "abcdefghijkl", pick(options{n: 50}))
	for _, o := range []options{{only: "nobody"}, {only: "("}, {tests: "("}} {
		_, err := choose(all, o)
		require.Error(t, err)
	}
}

// TestJudge reads what go test prints; what says nothing about a mutant is an error.
func TestJudge(t *testing.T) {
	failed := exec.Command("false").Run()
	for out, want := range map[string]result{
		"--- FAIL: TestA (0.1s)\n    --- FAIL: TestA/b (0.1s)\nFAIL\n":               {verdict: killed, detail: "TestA/b"},
		"panic: test timed out after 1s\n\trunning tests:\n\t\tTestA (1s)\n\nFAIL\n": {verdict: killed, detail: "TestA, which does not end"},
		"panic: oh\n\ngoroutine 7 [running]:\nFAIL\tadder\t0.1s\n":                   {verdict: killed, detail: "a panic, or what is left over when the tests have passed"},
		"# adder\na.go:4:1: no\nFAIL\tadder [build failed]\n":                        {verdict: broken, detail: "a.go:4:1: no"},
	} {
		require.Equal(t, want, judge(out, failed))
	}
	require.Equal(t, survived, judge("ok adder\n", nil).verdict)
	require.ErrorContains(t, judge("go: no such directory\n", failed).err, "no such directory")
	require.Error(t, judge("", exec.ErrNotFound).err)
}
