//go:build !cuda || !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "cuda: built without -tags cuda, or not for Linux")
	os.Exit(2)
}
