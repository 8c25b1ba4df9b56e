//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "scale: it measures in Linux's memory cgroups, and this is another system")
	os.Exit(1)
}
