//go:build (darwin || freebsd) && !race

package kernels

// adviseHugePages does nothing: these systems choose the size of pages themselves.
func adviseHugePages([]byte) {}
