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
	for _, cmd := range allCommands() {
		all, seen := 0, map[string]bool{}
		cmd.InitDefaultHelpFlag()
		groups := groupsOf(cmd)
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				all++
			}
		})
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
		require.Equal(t, all, strings.Count(help, "\n      --")+strings.Count(help, "\n  -h, --help")+strings.Count(help, "\n  -f, --file"))
	}
}

// TestHelpFitsAScreen: --help of a command with --help-all has at most 40 lines of at most 120
// columns, and names --help-all, which shows more.
func TestHelpFitsAScreen(t *testing.T) {
	for _, cmd := range allCommands() {
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

// allCommands returns the commands below the root and below those.
func allCommands() (all []*cobra.Command) {
	for _, cmd := range newRoot(&logOptions{form: textLog}, nil).Commands() {
		all = append(append(all, cmd), cmd.Commands()...)
	}
	return all
}

// TestFormatsHaveHelp: each format has examples, and its help has the flags that it takes, without
// the names of formats.
func TestFormatsHaveHelp(t *testing.T) {
	for name, format := range formats {
		require.NotEmpty(t, format.examples, name)
		for _, example := range format.examples {
			example, _, _ = strings.Cut(example, " >")
			cmd := ingestOf(name)
			giveFlags(cmd, name)
			require.NoError(t, cmd.ParseFlags(strings.Fields(example)), example)
			require.NoError(t, cmd.Args(cmd, cmd.Flags().Args()), example)
			cmd.Flags().Visit(func(f *pflag.Flag) { require.False(t, f.Hidden, "%s: --%s", example, f.Name) })
		}
		_, help, _ := strings.Cut(helpOf(t, newIngest([]string{"ingest", name}), name+" --help-all"), "Examples:\n")
		for other := range formats {
			require.NotContains(t, help, " "+other+": ", name)
		}
		for _, row := range ingestTable {
			takes := row.For == nil || row.For.Has(&ingestOptions{format: name})
			require.Equal(t, takes, strings.Contains(help, "\n      --"+row.FlagName()+" "), "%s: --%s", name, row.FlagName())
		}
	}
	require.Equal(t, "column x", helpFor("csv", "csv, tgb: column x"))
	require.Equal(t, "column x; a: b; z", helpFor("csv", "csv, tgb: csv: column x; a: b; tgb, tgl: y; more; csv: z"))
	// Flags before the format, and one of another format.
	code, _, stderr := gnnstore(t, "ingest", "--weight", "w", "--undirected", "csv", "none.csv", filepath.Join(t.TempDir(), "o.gnn"))
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "none.csv: no such file or directory")
	code, _, stderr = gnnstore(t, "ingest", "--bipartite", "csv", "none.csv", "o.gnn")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "--bipartite: it goes with format events, tgl or tgn, and this is csv\nusage: gnnstore ingest csv SRC OUT")
}

// TestDidYouMean: a message about an unknown command, format, flag or file names the nearest one
// that exists. If none is near, it names none.
func TestDidYouMean(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "arxiv.gnn"), 0o777))
	for line, want := range map[string]string{
		"trian x.gnn":                  "; did you mean train?\n",
		"ingest tabel a b":             "; did you mean table?\n",
		"runs prun":                    "runs has no command \"prun\"; did you mean prune?\n",
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
	code, stdout, stderr := gnnstore(t, append(strings.Fields(strings.TrimPrefix(cmd.CommandPath(), "gnnstore ")), strings.Fields(flag)...)...)
	require.Zero(t, code, stderr)
	return stdout
}
