package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gnnstore/gnnstore/store/setting"
)

// A command with many flags has two helps. --help is one screen: the first paragraph and the lists
// of the command's text, examples, and the usual flags, each in a few words. --help-all is the
// whole text, with all flags in groups.
//
// No usage template makes them: text/template calls methods by name, so the linker would keep all
// exported methods of all types, and the binary would be larger by several MB.

// helpAll is the flag --help-all. It ends parsing as --help does, so that missing arguments are no
// error.
type helpAll struct{ asked bool }

func (h *helpAll) Set(string) error { h.asked = true; return pflag.ErrHelp }
func (h *helpAll) String() string   { return "false" }
func (h *helpAll) Type() string     { return "bool" }

// groupFlags gives cmd its helps. cmd has examples and no subcommands. Without usual flags both
// helps are the same.
func groupFlags(cmd *cobra.Command) *cobra.Command {
	all := &helpAll{}
	cmd.Flags().VarPF(all, "help-all", "", "help with all flags").NoOptDefVal = "true"
	cmd.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		usage := fmt.Sprintf("Usage:\n  %s\n\nExamples:\n%s\n\n", cmd.UseLine(), cmd.Example)
		text, flags := briefText(cmd.Long), briefFlags(cmd)
		if all.asked || flags == "" {
			text, flags = cmd.Long, groupedFlags(cmd)
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s\n\n%s%s\n", text, usage, flags)
	})
	return cmd
}

// briefText returns the first paragraph of text and its lists, which begin with a line that ends
// with a colon.
func briefText(text string) string {
	var kept []string
	for i, paragraph := range strings.Split(text, "\n\n") {
		if first, _, list := strings.Cut(paragraph, "\n"); i == 0 || list && strings.HasSuffix(first, ":") {
			kept = append(kept, paragraph)
		}
	}
	return strings.Join(kept, "\n\n")
}

// briefFlags returns the usual flags of cmd, or "" if it has none.
func briefFlags(cmd *cobra.Command) string {
	usual := pflag.NewFlagSet("", pflag.ContinueOnError)
	usual.SortFlags = false
	count := 0
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		count++
		if brief := f.Annotations[setting.BriefOf]; brief != nil {
			short := *f
			short.Usage = brief[0]
			usual.AddFlag(&short)
		}
	})
	if !usual.HasFlags() {
		return ""
	}
	return fmt.Sprintf("The usual flags, of %d that --help-all shows:\n%s", count, strings.TrimRight(usual.FlagUsagesWrapped(helpColumns(cmd)), "\n"))
}

// groupedFlags returns all flags of cmd in their groups.
func groupedFlags(cmd *cobra.Command) string {
	var b strings.Builder
	for i, g := range groupsOf(cmd) {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s:\n%s", g.title, g.of(cmd.LocalFlags()).FlagUsagesWrapped(helpColumns(cmd)))
	}
	return strings.TrimRight(b.String(), "\n")
}

// helpColumns returns the width of the terminal that help goes to, or 0 if lines are not wrapped.
func helpColumns(cmd *cobra.Command) int {
	// cobra may have cmd write help to a buffer, so its root knows the terminal.
	if tty := screenOf(cmd.Root().OutOrStdout()); tty != nil {
		return columnsOf(tty)
	}
	return 0
}

// brief shows a flag on the first screen of help, with this text.
func brief(f *pflag.FlagSet, flag, text string) {
	f.Lookup(flag).Annotations[setting.BriefOf] = []string{text}
}
