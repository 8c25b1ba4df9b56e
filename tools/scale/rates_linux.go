package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// rates are bytes a second.
type rates struct{ write, read, memory float64 }

// measureDisk writes and reads 2 GiB around the page cache, 4 MiB at a time by two goroutines, as
// the builder does.
func measureDisk(dir string) (r rates, err error) {
	const block, blocks = 4 << 20, 512
	name := filepath.Join(dir, "rate")
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|unix.O_DIRECT, 0o600)
	if err != nil {
		return r, fmt.Errorf("measure the disk: %w", err)
	}
	defer os.Remove(name)
	defer f.Close()
	mem, err := unix.Mmap(-1, 0, 2*block, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return r, err
	}
	defer func() { _ = unix.Munmap(mem) }()
	for i := range mem {
		mem[i] = byte(i * 7)
	}
	pass := func(do func(b []byte, at int64) (int, error)) (float64, error) {
		start := time.Now()
		done := make(chan error, 2)
		for g := range 2 {
			go func() {
				for i := g; i < blocks; i += 2 {
					if _, err := do(mem[g*block:(g+1)*block], int64(i)*block); err != nil {
						done <- err
						return
					}
				}
				done <- nil
			}()
		}
		for range 2 {
			if err := <-done; err != nil {
				return 0, err
			}
		}
		return block * blocks / time.Since(start).Seconds(), nil
	}
	if r.write, err = pass(f.WriteAt); err != nil {
		return r, err
	}
	if r.read, err = pass(f.ReadAt); err != nil {
		return r, err
	}
	from, to := make([]byte, 256<<20), make([]byte, 256<<20)
	copy(to, from)
	start := time.Now()
	for range 4 {
		copy(to, from)
	}
	r.memory = 4 * float64(len(to)) / time.Since(start).Seconds()
	return r, nil
}
