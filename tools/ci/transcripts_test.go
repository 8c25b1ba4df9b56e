package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTranscript(t *testing.T) {
	text := "# Title\n\nText.\n\n    $ gnnstore a b\n    first\n\n    after an empty line\n    $ head -2 x\n\nText, and a block that is none:\n\n    x: 1\n\n    $ c\n"
	require.Equal(t, []shown{
		{line: 5, command: "gnnstore a b", output: []string{"first", "", "after an empty line"}},
		{line: 9, command: "head -2 x", output: []string{}},
		{line: 15, command: "c", output: []string{}},
	}, transcript(text))
	text = "    $ cat <<END\n    > a\n    >\n    > END\n    a\n    > b\n"
	require.Equal(t, []shown{{line: 1, command: "cat <<END\na\n\nEND", output: []string{"a", "> b"}}}, transcript(text))
}

func TestAlike(t *testing.T) {
	for _, c := range []struct {
		want, got string
		alike     bool
	}{
		{"user   2,000 nodes", "user 2,000 nodes", true},
		{"user 2,000 nodes", "user 2,001 nodes", false},
		{"test 80.40 %", "test 84.1 %", true},
		{"test 80.40 %, valid 1", "test 74.1 %, valid 1", false},
		{"loss 0.1000", "loss 0.1100", true},
		{"loss 0.1000", "loss 0.1500", false},
		{"loss 0.1000", "loss 1,100", false},
		{"done in 12 ms, 8 MiB/s", "done in 1.2 s, 12 KiB/s", true},
		{"done in 12 ms", "done in twelve", false},
		{"in 12 s", "in 12 s of 3", false},
		{"best epoch …: valid 90.00 %", "best epoch 17: valid 91 %", true},
		{"u12,0.5", "u12,0.55", true},
		{"u12,0.5", "u13,0.5", false},
		{"a.b", "axb", false},
		{"", "", true},
		{"", "x", false},
	} {
		require.Equal(t, c.alike, alike(c.want, c.got), "%q %q", c.want, c.got)
	}
}

func TestCompareShown(t *testing.T) {
	got := []string{"a", "b", "c", "d"}
	for _, fine := range [][]string{nil, {"…"}, {"a", "b", "c", "d"}, {"a", "…"}, {"…", "d"}, {"…", "b", "…"}, {"a", "…", "c", "d"}, {"a", "…", "b", "…", "d"}} {
		require.NoError(t, compareShown(fine, got), fine)
	}
	for _, bad := range [][]string{{"a"}, {"b", "…"}, {"…", "c"}, {"…", "d", "a"}, {"…", "b", "d"}, {"x"}} {
		require.Error(t, compareShown(bad, got), bad)
	}
}

func TestReplay(t *testing.T) {
	run := func(command string, output ...string) error {
		s := shown{command: command, output: output}
		return s.replay(t.Context(), t.TempDir(), t.TempDir())
	}
	require.NoError(t, run("echo a; echo b >&2", "a", "b"))
	require.ErrorContains(t, run("echo a; exit 3"), "it fails")
	require.NoError(t, run("echo a; exit 3", "a", "[exit 3]"))
	require.Error(t, run("echo a", "a", "[exit 3]"))
	require.ErrorContains(t, run("echo a", "b"), "shown:   b")
}
