package kernels

import (
	"bytes"
	"math"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// beside is address space that is left for what nobody counts: threads, and the runtime's tables of
// them and of the heap, which it makes 4 MiB at a time and cannot do without.
const beside = 48 << 20

// AddressSpace returns the bytes that this process may map and reserve in all, RLIMIT_AS, which
// shells set by ulimit -v, and the bytes of it that are left for files, buffers and the heap. left
// is below 0 where that is too little already. limited is false where there is no limit, or where
// the size taken so far is unknown.
func AddressSpace() (limit, left int64, limited bool) {
	var r unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_AS, &r) != nil || r.Cur >= math.MaxInt64 {
		return 0, 0, false
	}
	b, err := os.ReadFile("/proc/self/statm") // in pages, the whole size first
	if err != nil {
		return 0, 0, false
	}
	pages, _, _ := bytes.Cut(b, []byte(" "))
	taken, err := strconv.ParseInt(string(pages), 10, 64)
	if err != nil {
		return 0, 0, false
	}
	return int64(r.Cur), int64(r.Cur) - taken*int64(os.Getpagesize()) - beside, true
}

// Addressable is at most n: what of it there is address space for, with an eighth of that to spare.
// It is for defaults.
func Addressable(n int64) int64 {
	if _, left, limited := AddressSpace(); limited {
		return min(n, max(0, left-left/8))
	}
	return n
}
