package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gnnstore/gnnstore/store/setting"
)

// flagGroup is a heading in the help of a command, and the flags below it in their order.
type flagGroup struct{ title, flags string }

// The groups of flags of commands whose options are in no setting.Table.
var (
	ingestGroups = []flagGroup{
		{"Tables and edge lists (csv, events)", "columns src dst weight edge-columns edge-features time time-scale part header one-id-space bipartite"},
		{"Tables of nodes (csv, events)", "nodes id id-type label feature-columns node-features missing-features node-count"},
		{"Arrays (npy, npz, pt)", "array-edges array-features array-labels array-train array-valid array-test array-weights raw-array csr-rows edge-layout mask-split multi-label"},
		{"Other formats", "add-reverse year-columns full-features row-order literals infer"},
		{"Edges", "undirected reverse self-loops duplicates edge-ids edge-split"},
		{"Features and splits", "features normalize dtype clamp split allow-leak seed"},
		{"The dataset", "name order skip-bad follow-links memory tmp plan json help"},
	}
	generateGroups = []flagGroup{
		{"The graph", "scale nodes edges classes dim signal homophily span train valid test seed"},
		{"Edges", "undirected reverse self-loops duplicates edge-split"},
		{"The dataset", "features dtype split name order raw memory tmp plan json help"},
	}
	traceGroups = []flagGroup{
		{"The graph", "target relation input edge-input split"},
		{"Sampling", "samplers fanout layers kappa dependent layer-dependency poisson walk-length walks walk-restart seed"},
		{"Caches and batches", "cache policies batch batches steps epochs"},
		{"Historical embeddings", "history p-grad t-stale history-start history-lag history-memory hidden window-memory window equal-bytes disk-costs"},
		{"The report", "workers tmp svg json help"},
	}
	predictGroups = []flagGroup{
		{"What to predict", "what layer type relation nodes edges pairs top exclude-known at events"},
		{"The network", "checkpoint older-checkpoint unseen"},
		{"The file", "format force json"},
		{"Memory and disk", "memory way tmp layer-dtype plan help"},
	}
)

var flagGroups = map[string][]flagGroup{
	"ingest": ingestGroups, "generate": generateGroups, "trace": traceGroups, "predict": predictGroups,
}

// groupsOf returns the groups of a command's flags. Those of a setting.Table know their groups. The
// last group has the flags that know none.
func groupsOf(cmd *cobra.Command) (groups []flagGroup) {
	if listed := flagGroups[cmd.Name()]; listed != nil {
		return listed
	}
	add := func(title, flag string) {
		i := slices.IndexFunc(groups, func(g flagGroup) bool { return g.title == title })
		if i < 0 {
			i = len(groups)
			groups = append(groups, flagGroup{title: title})
		}
		groups[i].flags += " " + flag
	}
	var rest []string
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if group := f.Annotations[setting.GroupOf]; group != nil {
			add(group[0], f.Name)
		} else {
			rest = append(rest, f.Name)
		}
	})
	for _, name := range rest {
		if len(groups) > 0 {
			add(groups[len(groups)-1].title, name)
		}
	}
	return groups
}

// addGroup adds flags to a command, in a group of its help.
func addGroup(f *pflag.FlagSet, title string, flags *pflag.FlagSet) {
	flags.SortFlags = false
	flags.VisitAll(func(flag *pflag.Flag) { flag.Annotations = map[string][]string{setting.GroupOf: {title}} })
	f.AddFlagSet(flags)
}

// completeFlags has the shell complete the words that options take.
func completeFlags[T any](cmd *cobra.Command, given *setting.Bound[T]) {
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		words := given.Choices(f.Name)
		if len(words) == 0 {
			return
		}
		err := cmd.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
		if err != nil {
			panic(err) // the flag has another completion already
		}
	})
}

// Cobra keeps the functions of its templates for all commands. It does not guard them, so this one
// is added before any command runs.
func init() { cobra.AddTemplateFunc("groupedFlags", groupedFlags) }

const ungrouped = "Flags:\n{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}"

// groupFlags makes the help of cmd show its flags in groups.
func groupFlags(cmd *cobra.Command) *cobra.Command {
	cmd.SetUsageTemplate(strings.Replace(cmd.UsageTemplate(), ungrouped, "{{groupedFlags .}}", 1))
	return cmd
}

// groupedFlags returns the flags of cmd in groups. On a terminal it wraps their lines.
func groupedFlags(cmd *cobra.Command) string {
	width := 0 // lines are not wrapped
	// cmd itself writes help to a buffer, so its root knows the terminal.
	if tty := screenOf(cmd.Root().OutOrStdout()); tty != nil {
		width = columnsOf(tty)
	}
	var b strings.Builder
	for i, g := range groupsOf(cmd) {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s:\n%s", g.title, g.of(cmd.LocalFlags()).FlagUsagesWrapped(width))
	}
	return strings.TrimRight(b.String(), "\n")
}

// of returns the flags of a group.
func (g flagGroup) of(all *pflag.FlagSet) *pflag.FlagSet {
	flags := pflag.NewFlagSet(g.title, pflag.ContinueOnError)
	flags.SortFlags = false
	for name := range strings.FieldsSeq(g.flags) {
		flags.AddFlag(all.Lookup(name))
	}
	return flags
}
