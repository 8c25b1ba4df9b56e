package main

import (
	"cmp"
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
	// BF16Sets is KernelSets for products in bf16, and BF16 what runs with --matmul bf16 unless
	// --kernels says otherwise: empty where that is slower than f32. NoAMX says why there is no
	// AMX.
	BF16     kernels.Set   `json:"bf16_kernels"`
	BF16Sets []kernels.Set `json:"bf16_kernel_sets"`
	NoAMX    string        `json:"no_amx,omitempty"`
}

func thisVersion() versionInfo {
	bf16, _ := kernels.ParseSet("auto", kernels.BF16)
	return versionInfo{
		version(), runtime.Version(), runtime.GOOS, runtime.GOARCH,
		string(kernels.Sets()[0]), store.Version, kernels.Sets(), kernels.Devices(),
		bf16, kernels.SetsOf(kernels.BF16), kernels.WhyNotBF16(),
	}
}

// String returns it in a line.
func (v versionInfo) String() string {
	s := fmt.Sprintf("gnnstore %s, %s %s/%s, kernels %s of %v, dataset format %d, devices %v, for bf16 kernels %s of %v",
		v.Version, v.Go, v.OS, v.Arch, v.Kernels, v.KernelSets, v.Format, v.Devices, cmp.Or(v.BF16, "none"), v.BF16Sets)
	if v.NoAMX != "" {
		s += ": " + v.NoAMX
	}
	return s
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

// release is the version of a released binary. The build of a release sets it.
var release string

// version returns the release, the module's version, or the revision that was built.
func version() string {
	if release != "" {
		return release
	}
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
