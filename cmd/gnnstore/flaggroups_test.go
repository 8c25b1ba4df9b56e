package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// TestFlagGroups: each flag of a command is in one of its groups, and no group has more than
// fifteen. A command with more than fifteen flags has groups.
func TestFlagGroups(t *testing.T) {
	for _, cmd := range newRoot(&logOptions{form: textLog}).Commands() {
		all, seen := 0, map[string]bool{}
		cmd.InitDefaultHelpFlag()
		groups := groupsOf(cmd)
		cmd.LocalFlags().VisitAll(func(*pflag.Flag) { all++ })
		for _, g := range groups {
			names := g.flags
			require.LessOrEqual(t, len(names), 15, "%s: %s", cmd.Name(), g.title)
			for _, name := range names {
				require.NotNil(t, cmd.LocalFlags().Lookup(name), "%s has no --%s", cmd.Name(), name)
				require.False(t, seen[name], "%s: --%s is in two groups", cmd.Name(), name)
				seen[name] = true
			}
		}
		if groups == nil {
			require.LessOrEqual(t, all, 15, cmd.Name())
			continue
		}
		require.Len(t, seen, all, "%s has flags in no group", cmd.Name())
		help := helpOf(t, cmd, "--help-all")
		require.NotContains(t, help, "\nFlags:\n")
		require.Contains(t, help, "\n"+groups[0].title+":\n      --")
		require.Equal(t, all, strings.Count(help, "\n      --")+strings.Count(help, "\n  -h, --help"))
	}
}

// TestHelpFitsAScreen: --help of a command with --help-all has at most 40 lines of at most 120
// columns, and names --help-all, which shows more.
func TestHelpFitsAScreen(t *testing.T) {
	for _, cmd := range newRoot(&logOptions{form: textLog}).Commands() {
		if cmd.Flags().Lookup("help-all") == nil {
			continue
		}
		help := helpOf(t, cmd, "--help")
		lines := strings.Split(strings.TrimSuffix(help, "\n"), "\n")
		require.LessOrEqual(t, len(lines), 40, "%s", help)
		for _, line := range lines {
			require.LessOrEqual(t, utf8.RuneCountInString(line), 120, line)
		}
		require.Contains(t, help, "--help-all")
		require.Greater(t, len(helpOf(t, cmd, "--help-all")), 2*len(help), cmd.Name())
	}
}

// TestDidYouMean: a message about an unknown command, format, flag or file names the nearest one
// that exists. If none is near, it names none.
func TestDidYouMean(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "arxiv.gnn"), 0o777))
	for line, want := range map[string]string{
		"trian x.gnn":                  "; did you mean train?\n",
		"ingest tabel a b":             "; did you mean table?\n",
		"train x.gnn --fanot 5":        "unknown flag: --fanot; did you mean --fanout?\n",
		"train x.gnn --zzz 5":          "unknown flag: --zzz\n",
		"inspect " + dir + "/axiv.gnn": ": no such dataset; did you mean " + dir + "/arxiv.gnn?\n",
		"inspect " + dir + "/other":    ": no such dataset\n",
		"xyzzy":                        "gnnstore --help lists them\n",
	} {
		code, _, stderr := gnnstore(t, strings.Split(line, " ")...)
		require.NotZero(t, code, line)
		require.Contains(t, stderr, want, line)
	}
}

// TestCompletion: the shell completes the words that options take.
func TestCompletion(t *testing.T) {
	for line, want := range map[string]string{
		"train x.gnn --sampler ":   "ns\nlabor0\nlabor-star\nrw\nrecent\nuniform\n:4\n",
		"train x.gnn --publish l":  "early\nlate\n:4\n",
		"trace x.gnn --policies s": "static\nlru\nsieve\nbelady\n:4\n",
		"eval run --checkpoint ":   "best\nlast\n:4\n",
		"predict run out --way ":   "auto\nrows\nsums\n:4\n",
	} {
		code, stdout, stderr := gnnstore(t, append([]string{"__complete"}, strings.Split(line, " ")...)...)
		require.Zero(t, code, stderr)
		require.Equal(t, want, stdout, line)
	}
}

func helpOf(t *testing.T, cmd *cobra.Command, flag string) string {
	t.Helper()
	code, stdout, stderr := gnnstore(t, cmd.Name(), flag)
	require.Zero(t, code, stderr)
	return stdout
}
