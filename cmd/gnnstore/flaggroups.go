package main

import (
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gnnstore/gnnstore/store/setting"
)

// flagGroup is a heading in the help of a command, and the flags below it in their order.
type flagGroup struct {
	title string
	flags []string
}

// groupsOf returns the groups that the annotations of a command's flags name, without hidden flags.
// Flags without a group join the last one.
func groupsOf(cmd *cobra.Command) (groups []flagGroup) {
	add := func(title, flag string) {
		i := slices.IndexFunc(groups, func(g flagGroup) bool { return g.title == title })
		if i < 0 {
			i = len(groups)
			groups = append(groups, flagGroup{title: title})
		}
		groups[i].flags = append(groups[i].flags, flag)
	}
	var rest []string
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		if group := f.Annotations[setting.GroupOf]; group != nil && group[0] != "" {
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

// bindTable gives a command the flags of a table, which set the options of o.
func bindTable[T any](cmd *cobra.Command, t setting.Table[T], o *T) *setting.Bound[T] {
	cmd.Flags().SortFlags = false
	return setting.Bind(cmd.Flags(), t, o)
}

// completeFlags has the shell complete the words that options take. Cobra keeps completions for
// ever, so execute calls this only if the command line asks for completions.
func completeFlags(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		completeFlags(cmd)
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			words := f.Annotations[setting.ChoicesOf]
			if len(words) == 0 {
				return
			}
			err := cmd.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
			if err != nil {
				panic(err) // the flag has another completion already
			}
		})
	}
}

// of returns the flags of a group.
func (g flagGroup) of(all *pflag.FlagSet) *pflag.FlagSet {
	flags := pflag.NewFlagSet(g.title, pflag.ContinueOnError)
	flags.SortFlags = false
	for _, name := range g.flags {
		flags.AddFlag(all.Lookup(name))
	}
	return flags
}
