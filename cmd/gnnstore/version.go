package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
)

type versionInfo struct {
	Version string `json:"version"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
	Kernels string `json:"kernels"` // what runs unless --kernels says otherwise
	Format  int    `json:"dataset_format"`
	// KernelSets is all that this machine can run, the fastest first.
	KernelSets []kernels.Set `json:"kernel_sets"`
	Devices    []string      `json:"devices"` // of this build
}

func thisVersion() versionInfo {
	return versionInfo{
		version(), runtime.Version(), runtime.GOOS, runtime.GOARCH,
		string(kernels.Sets()[0]), store.Version, kernels.Sets(), kernels.Devices(),
	}
}

// String returns it in a line.
func (v versionInfo) String() string {
	return fmt.Sprintf("gnnstore %s, %s %s/%s, kernels %s of %v, dataset format %d, devices %v",
		v.Version, v.Go, v.OS, v.Arch, v.Kernels, v.KernelSets, v.Format, v.Devices)
}

func newVersion() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version, and what this build can do",
		Args:  exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON {
				return printJSON(cmd.OutOrStdout(), thisVersion())
			}
			fmt.Fprintln(cmd.OutOrStdout(), thisVersion())
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return cmd
}

// version returns the module's version, or the revision that was built.
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
