package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/run"
)

// topicTexts has the text of each topic by its name.
func topicTexts(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	files, err := filepath.Glob("topics/*.md")
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		texts[strings.TrimSuffix(filepath.Base(file), ".md")] = string(text)
	}
	require.NotEmpty(t, texts)
	return texts
}

// TestTopicsAreHelp: `gnnstore help NAME` prints a topic as it is where no terminal reads it. No
// command has the name of a topic.
func TestTopicsAreHelp(t *testing.T) {
	for name, text := range topicTexts(t) {
		code, stdout, stderr := gnnstore(t, "help", name)
		require.Zero(t, code, stderr)
		require.Equal(t, text, stdout)
		code, stdout, _ = gnnstore(t, name)
		require.Zero(t, code)
		require.Equal(t, text, stdout)
	}
	code, stdout, _ := gnnstore(t, "help")
	require.Zero(t, code)
	require.Contains(t, stdout, "gnnstore memory")
}

// TestTopicsReadWell: a topic has a title and an example, and its lines are short.
func TestTopicsReadWell(t *testing.T) {
	for name, text := range topicTexts(t) {
		require.Regexp(t, `^# \S`, text, name)
		require.Contains(t, text, "\n## Example\n", name)
		if name != "options" { // that topic has a line for each
			require.LessOrEqual(t, strings.Count(text, "\n"), 150, name)
		}
		for i, line := range strings.Split(text, "\n") {
			if !strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "    ") {
				require.LessOrEqual(t, len([]rune(line)), 100, "%s, line %d", name, i+1)
			}
		}
	}
}

// TestOptionsTopic: run.Table makes the topic of options. `go test ./cmd/gnnstore -run
// TestOptionsTopic -update` writes it anew.
func TestOptionsTopic(t *testing.T) {
	o := run.DefaultOptions().ForFlags()
	want := "# Options: every flag of train that sets an option of a run\n\n" +
		"`gnnstore train --help-all` shows them too, and --run, --resume, --seeds, --listen,\n" +
		"--listen-optional, --plan, --network, --json, --file and --print-config. A file for --file names\n" +
		"the options without the dashes.\n\n" +
		"A run records its options in run.json. A resumed run keeps those that stay, and refuses other\n" +
		"values. It may change `--epochs`, but not with `--schedule cosine`, and leave out `--init` and\n" +
		"`--init-rows`. Some options are chosen by the data if they are not given: see\n" +
		"[training](training.md). Defaults are those of networks for graphs; networks for\n" +
		"[streams](streams.md) have others.\n\n" +
		"## Example\n\n" +
		"    $ gnnstore generate reddit graph.gnn --nodes 20k --edges 100k --undirected\n" +
		"    $ gnnstore train graph.gnn --fanout 5,5 --hidden 16 --epochs 1 --run runs/first\n" +
		"    $ gnnstore train --resume --run runs/first --epochs 2   # epochs may change\n" + run.Table.Markdown(&o)
	const file = "topics/options.md"
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(want), 0o666))
	}
	got, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, want, string(got))
}

// TestTopicsNameFlags: every flag that the topics and the README name is a flag of some command.
func TestTopicsNameFlags(t *testing.T) {
	flags := map[string]bool{"help": true}
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) { flags[f.Name] = true })
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(newRoot(&logOptions{form: textLog}, nil))
	texts := topicTexts(t)
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	texts["README"] = string(readme)
	named := regexp.MustCompile(`(?:^|[\s` + "`" + `(])--([a-z][a-z0-9-]*)`)
	for name, text := range texts {
		for _, m := range named.FindAllStringSubmatch(text, -1) {
			require.True(t, flags[m[1]], "%s names --%s, a flag of no command", name, m[1])
		}
	}
}

// TestTopicsExamples runs the first commands of each topic in an empty directory, one after the
// other: the lines of code that begin with "$ gnnstore". Tutorials are left to tools/ci, whose
// transcripts run all their commands and compare what they print.
func TestTopicsExamples(t *testing.T) {
	storetest.Long(t)
	for name, text := range topicTexts(t) {
		if strings.HasPrefix(name, "tutorial-") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			commands := 0
			for line := range strings.Lines(text) {
				command, ok := strings.CutPrefix(line, "    $ gnnstore ")
				if !ok {
					continue
				}
				command, _, _ = strings.Cut(command, " #")
				commands++
				code, _, stderr := gnnstore(t, strings.Fields(command)...)
				require.Zero(t, code, "gnnstore %s\n%s", command, stderr)
			}
			require.Positive(t, commands)
		})
	}
}

func TestFormatTopic(t *testing.T) {
	text := "# Title of it\n\nA paragraph with `--flag` and [a link](topics/x.md) that is longer\nthan the terminal.\n\n" +
		"    $ gnnstore demo   # code stays\n\n- an item that is longer than the terminal is\n- another\n\n" +
		"| what | bytes |\n|---|---|\n| a `row` | one \\| two |\n"
	want := bold + "Title of it" + regular + "\n\nA paragraph with --flag and a\nlink that is longer than the\nterminal.\n\n" +
		"    $ gnnstore demo   # code stays\n\n- an item that is longer\n  than the terminal is\n- another\n\n" +
		bold + "a row" + regular + "\n    one | two\n"
	require.Equal(t, want, formatTopic(text, 30))
	for _, hostile := range []string{"", "#", "|", "| |", "](", "[a](b", "    ", "- "} {
		require.NotPanics(t, func() { formatTopic(hostile, 20) }, fmt.Sprintf("%q", hostile))
	}
}

// TestSchemaTopic ingests small tables by the schema that the topic shows.
func TestSchemaTopic(t *testing.T) {
	_, text, _ := strings.Cut(topicTexts(t)["schema"], "## What can a schema say?")
	t.Chdir(t.TempDir())
	text, _, _ = strings.Cut(text, "\n## ")
	var schema strings.Builder
	for line := range strings.Lines(text) {
		if code, ok := strings.CutPrefix(line, "    "); ok {
			schema.WriteString(code)
		}
	}
	plain := strings.NewReplacer(".parquet", ".csv", ".csv.gz", ".csv", ".tsv", ".csv").Replace(schema.String())
	require.NoError(t, os.Mkdir("users", 0o777))
	for name, text := range map[string]string{
		"schema.yaml": plain,
		"users/part_1.csv": "user_id,age,country,segment,part,kind,income,signup,city,agent\n" +
			"u1,3,fr,a,train,person,10,2020-01-02,x,m/1\nu2,,de,b,test,person,1000,2021-01-02,y,m/2\n" +
			"u3,5,fr,unknown,,person,5,2022-03-04,x,m/1\nu4,1,de,b,,robot,7,2020-01-02,x,m/3\n",
		"items.csv": "sku,price,title_vector\n7,2,3;4\n8,2.5,3;5\n9,1,1;2\n",
		"kinds.csv": "item,kind\n7,a\n9,b\n",
		"train.csv": "id\n7\n", "valid.csv": "id\n8\n", "test.csv": "id\n9\n",
		"buys.csv":  "user,item,amount,bought_at,price_paid,days\nu1,7,2,5,6,7\nu2,8,1,5,6,7\nu2,,1,5,6,7\n",
		"facts.csv": "item,relation,brand\n7,made by,x\n8,sold as,y\n",
	} {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o666))
	}
	code, out, stderr := gnnstore(t, "ingest", "table", "schema.yaml", "shop.gnn")
	require.Zero(t, code, stderr)
	for _, line := range []string{
		`user +3 nodes`, `item +3 nodes`, `user__buys__item +2 edges from 2 read`, `columns +weight, time kept`,
		`features +feat of user: [0-9]+ × f16`, `features +text of item: 2 × f16`, `labels +label of user: 2 classes, .* 1 nodes without`,
		`labels +label of item: 2 classes`, `split +user: 1 train, 0 valid, 1 test`, `split +item: 1 train, 1 valid, 1 test`,
	} {
		require.Regexp(t, "(?m)^"+line, out)
	}
}

// TestTroubleshootingTopic: the messages that the topic explains are messages of the program. "…"
// and the names of flags stand between the parts that the source has.
func TestTroubleshootingTopic(t *testing.T) {
	var source strings.Builder
	require.NoError(t, filepath.WalkDir("../..", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		source.Write(text)
		return err
	}))
	whole := regexp.MustCompile(`"\s*\+\s*"`).ReplaceAllString(source.String(), "")
	messages := regexp.MustCompile("(?m)^\\| `([^`]*)` \\|").FindAllStringSubmatch(topicTexts(t)["troubleshooting"], -1)
	require.Greater(t, len(messages), 20)
	for _, m := range messages {
		for _, part := range regexp.MustCompile(`…|--[a-z-]+`).Split(m[1], -1) {
			require.True(t, strings.Contains(whole, part), "no message has %q", part)
		}
	}
}
