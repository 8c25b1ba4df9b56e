//go:build cuda && linux

package main

import (
	"os"

	"github.com/gnnstore/gnnstore/kernels/cuda" // registers the device "cuda"
)

func init() { cuda.PlaceCublas(os.Getenv("GNNSTORE_CUBLAS")) }
