//go:build !cuda || !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "cuda: build it on Linux with -tags cuda, as tools/cuda/doc.go says")
	os.Exit(2)
}
