//go:build cuda && linux

package main

import _ "github.com/gnnstore/gnnstore/kernels/cuda" // registers the device "cuda"
