package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gnnstore/gnnstore/store/setting"
)

// A command with many flags has two helps. --help is one screen: the first paragraph of the
// command's text, its examples, and its usual flags. --help-all is the whole text, and all flags in
// groups.
//
// Both are written without a usage template. A template needs text/template, which calls methods by
// name. Then the linker would keep all exported methods of all types, and the binary would be
// larger by several MB.

// helpAll is the flag --help-all. It ends parsing as --help does, so that missing arguments are no
// error.
type helpAll struct{ asked bool }

func (h *helpAll) Set(string) error { h.asked = true; return pflag.ErrHelp }
func (h *helpAll) String() string   { return "false" }
func (h *helpAll) Type() string     { return "bool" }

// groupFlags gives cmd both helps. cmd must have examples.
func groupFlags(cmd *cobra.Command) *cobra.Command {
	all := &helpAll{}
	cmd.Flags().VarPF(all, "help-all", "", "help with all flags").NoOptDefVal = "true"
	cmd.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		text, _, _ := strings.Cut(cmd.Long, "\n\n")
		flags := usualFlags(cmd)
		if all.asked {
			text, flags = cmd.Long, groupedFlags(cmd)
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s\n\nUsage:\n  %s\n\nExamples:\n%s\n\n%s\n", text, cmd.UseLine(), cmd.Example, flags)
	})
	return cmd
}

// usualFlags returns the usual flags of cmd, each with its brief text.
func usualFlags(cmd *cobra.Command) string {
	usual := pflag.NewFlagSet("", pflag.ContinueOnError)
	usual.SortFlags = false
	all := 0
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		all++
		if brief := f.Annotations[setting.BriefOf]; brief != nil {
			short := *f
			short.Usage = brief[0]
			usual.AddFlag(&short)
		}
	})
	text := strings.TrimRight(usual.FlagUsagesWrapped(helpColumns(cmd)), "\n")
	return fmt.Sprintf("The usual flags, of %d that --help-all shows:\n%s", all, text)
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

// helpColumns returns the width of the terminal that help goes to. It returns 0 if there is none,
// so that lines are not wrapped.
func helpColumns(cmd *cobra.Command) int {
	// cobra may have cmd write help to a buffer, so its root knows the terminal.
	if tty := screenOf(cmd.Root().OutOrStdout()); tty != nil {
		return columnsOf(tty)
	}
	return 0
}

// makeUsual puts a flag on the first screen of help. Its text there is brief, or without one its
// usage.
func makeUsual(f *pflag.FlagSet, flag, brief string) {
	x := f.Lookup(flag)
	x.Annotations[setting.BriefOf] = []string{cmp.Or(brief, x.Usage)}
}
