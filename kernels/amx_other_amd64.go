//go:build amd64 && !linux && !purego

package kernels

// haveTiles says why there is no AMX.
func haveTiles() string { return "AMX is used on Linux alone" }
