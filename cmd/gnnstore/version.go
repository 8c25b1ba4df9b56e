package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train"
)

type versionInfo struct {
	Version string `json:"version"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
	Kernels string `json:"kernels"`
	Format  int    `json:"dataset_format"`
}

func newVersion() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version, and what this build can do",
		Args:  exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := versionInfo{version(), runtime.Version(), runtime.GOOS, runtime.GOARCH, train.Kernels(), store.Version}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), v)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "gnnstore %s, %s %s/%s, kernels %s, dataset format %d\n", v.Version, v.Go, v.OS, v.Arch, v.Kernels, v.Format)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return cmd
}

// version is the module's, or the revision that was built.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	if v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return "devel-" + s.Value[:min(12, len(s.Value))]
		}
	}
	return "devel"
}
