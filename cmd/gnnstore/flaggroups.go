package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagGroup is a heading in the help of a command, and the flags below it in their order.
type flagGroup struct{ title, flags string }

// The groups of flags of the commands that have many.
var (
	trainGroups = []flagGroup{
		{"What to learn", "task target edge-label metric class-weights split"},
		{"Input", "input edge-input label-input relation init init-rows"},
		{"Network", "model layers hidden heads bases norm dropout input-dropout attn-dropout"},
		{"Links and edges", "decoder loss negatives corrupt chunk n3 keep-targets eval-negatives eval-edges"},
		{"Sampling", "fanout sampler kappa dependent layer-dependency poisson weighted walk-length walks walk-restart"},
		{"Learning", "batch epochs epoch-steps patience lr optimizer weight-decay clip-norm embed-optimizer seed"},
		{"Schedule of the learning rate", "schedule warmup min-lr lr-gamma lr-every lr-milestones"},
		{"Historical embeddings", "history p-grad t-stale history-start history-lag history-memory history-cold history-audit history-audit-every"},
		{"Streams of events", "stream negative-population staleness mitigate mitigate-audit identity pair-features publish inflight warm-events times fixed-time state mails time-columns"},
		{"Evaluation", "eval eval-every eval-test eval-nodes eval-memory layer-dtype"},
		{"Memory", "memory topology-memory device-memory host-memory batch-memory policy window lookahead"},
		{"Disk and processors", "spill tmp disk-engine disk-rate workers kernels"},
		{"The run", "run resume checkpoint-every keep-checkpoints log-every listen plan json help"},
	}
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

// flagGroups has the groups of a command by its name.
var flagGroups = map[string][]flagGroup{
	"train": trainGroups, "ingest": ingestGroups, "generate": generateGroups, "trace": traceGroups, "predict": predictGroups,
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
	for i, g := range flagGroups[cmd.Name()] {
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
