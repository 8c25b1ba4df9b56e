package kernels

import "golang.org/x/sys/unix"

// fenced is n bytes, a multiple of the page size, between two pages that fault when touched. It is
// never given back.
func fenced(n int) []byte {
	page := unix.Getpagesize()
	m, err := unix.Mmap(-1, 0, n+2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		panic(err)
	}
	for _, guard := range [][]byte{m[:page], m[page+n:]} {
		if err := unix.Mprotect(guard, unix.PROT_NONE); err != nil {
			panic(err)
		}
	}
	return m[page : page+n : page+n]
}
