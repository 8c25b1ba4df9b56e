package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// TestFlagGroups: each flag of a command is in one of its groups, and no group has more than
// fifteen. A command with more than fifteen flags has groups.
func TestFlagGroups(t *testing.T) {
	for _, cmd := range newRoot().Commands() {
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
		help := helpOf(t, cmd)
		require.NotContains(t, help, "\nFlags:\n")
		require.Contains(t, help, "\n"+groups[0].title+":\n      --")
		require.Equal(t, all, strings.Count(help, "\n      --")+strings.Count(help, "\n  -h, --help"))
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

func helpOf(t *testing.T, cmd *cobra.Command) string {
	t.Helper()
	code, stdout, stderr := gnnstore(t, cmd.Name(), "--help")
	require.Zero(t, code, stderr)
	return stdout
}
