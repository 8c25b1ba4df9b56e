//go:build man

package main

import (
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func init() { extraCommands = append(extraCommands, newMan) }

// newMan returns a command that writes manual pages. The tag keeps the libraries that it needs out
// of other builds.
func newMan() *cobra.Command {
	var markdown bool
	cmd := &cobra.Command{
		Use:    "man FOLDER",
		Short:  "Write a manual page of each command into FOLDER",
		Hidden: true,
		Args:   exactArgs("FOLDER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o777); err != nil {
				return err
			}
			root := newRoot(&logOptions{form: textLog}, nil) // its own root lacks the flags of formats
			root.DisableAutoGenTag = true
			if markdown {
				return doc.GenMarkdownTree(root, args[0])
			}
			return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "gnnstore " + version(), Manual: "gnnstore"}, args[0])
		},
	}
	cmd.Flags().BoolVar(&markdown, "markdown", false, "write Markdown in place of pages for man")
	return cmd
}
