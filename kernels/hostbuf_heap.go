//go:build race || !(linux || darwin || freebsd)

package kernels

// Every HostBuf is in the Go heap: the race detector sees no other memory, and this system may have
// no maps.
const (
	canMap     = false
	maxHostBuf = 1 << 46 // make panics near here, and is fatal before, where memory ends
)

func mapMemory(int) ([]byte, error) { panic("kernels: no memory maps here") }
func unmapMemory([]byte)            {}
