package main

import (
	"strings"

	"github.com/gnnstore/gnnstore/kernels/cuda/clib"
)

// host writes a libcuda.so.1 that runs kernels on the host, and a libcublas.so.12 for it.
// sanitizers, if any, have commas.
func host(folder, sanitizers string) error {
	var flags []string
	if sanitizers != "" {
		flags = []string{"-g", "-fno-omit-frame-pointer", "-fsanitize=" + sanitizers}
		if strings.Contains(sanitizers, "undefined") {
			flags = append(flags, "-fno-sanitize-recover=undefined")
		}
	}
	if err := clib.BuildDriver(folder, flags...); err != nil {
		return err
	}
	return clib.BuildCublas(folder, flags...)
}
