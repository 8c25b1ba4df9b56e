//go:build cuda && linux

package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/ebitengine/purego"
)

// loadAll compiles every PTX file for the device, and prints the resources of each kernel.
func loadAll(o *options) error {
	d, err := open(o)
	if err != nil {
		return err
	}
	modules, err := d.loadModules()
	if err != nil {
		return err
	}
	var sum float64
	for _, m := range modules {
		sum += ms(m.took)
		fmt.Printf("%s: %.1f ms, %d kernels\n", m.file, ms(m.took), len(m.kernels))
		for _, name := range slices.Sorted(maps.Keys(m.kernels)) {
			showKernel(d, m.kernels[name])
		}
		if m.log != "" && os.Getenv("LOOK_LOG") != "" {
			fmt.Println("  log:", strings.ReplaceAll(strings.TrimSpace(m.log), "\n", "\n       "))
		}
	}
	fmt.Printf("all files: %.1f ms (CUDA_CACHE_DISABLE=%s)\n", sum, os.Getenv("CUDA_CACHE_DISABLE"))
	return nil
}

func showKernel(d *driver, k *kernel) {
	threads := k.attribute(0) // CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK
	out := d.memory.words(1)
	d.do("cuOccupancyMaxActiveBlocksPerMultiprocessor", at(out), uintptr(k.function),
		uintptr(min(threads, 256)), 0)
	fmt.Printf("  %-24s registers %3d, local %d B, shared %5d B, threads <= %4d, blocks/SM %2d, "+
		"parameters %d B, PTX %d, binary %d\n", k.name, k.attribute(4), k.attribute(3),
		k.attribute(1), threads, out[0], k.layout.size, k.attribute(5), k.attribute(6))
}

// tryPacking launches a kernel with parameters of every size, and checks the values it received.
func tryPacking(o *options) error {
	var w wrong
	d, kernels, err := openKernels(o)
	if err != nil {
		return err
	}
	k, s := kernels["mixed"], d.newStream()
	var places []string
	for _, p := range k.layout.params {
		places = append(places, fmt.Sprintf("%s@%d", p.kind, p.offset))
	}
	fmt.Printf("layout %s, %d bytes\n", strings.Join(places, " "), k.layout.size)
	out := d.alloc(64)
	k.launch(1, 1, 1, s, uint8(201), uint32(0xfedcba98), out, uint8(202), float32(1.25), uint8(203),
		uint64(0x0123_4567_89ab_cdef), uint16(0xbeef), 2.125)
	got := newArena(4096).longs(8)
	d.download(at(got), out, 64, s)
	d.syncStream(s)
	want := []uint64{201, 0xfedcba98, 202, 5, 203, 0x0123_4567_89ab_cdef, 0xbeef, 17}
	if !slices.Equal(got, want) {
		w.add("the kernel got %#x, want %#x", got, want)
	}
	// Does the driver check the buffer's size? Try eight bytes less, and eight more.
	for _, more := range []int{-8, 8} {
		k.extra[5] = uint64(k.layout.size + more)
		fmt.Printf("buffer size %+d: %s\n", more, d.errorName(k.try(1, 1, 1, s)))
	}
	k.extra[5] = uint64(k.layout.size)
	d.syncStream(s)
	return w.err()
}

// tryErrors provokes errors that leave the context alive, and launches after each.
func tryErrors(o *options) error {
	var w wrong
	d, err := open(o)
	if err != nil {
		return err
	}
	_, err = purego.Dlsym(d.handle, "cuNoSuchFunction")
	fmt.Println("missing symbol:", err)
	if err == nil {
		w.add("a symbol that is not there was found")
	}
	modules, err := d.loadModules()
	if err != nil {
		return err
	}
	var empty *kernel
	for _, m := range modules {
		if k := m.kernels["empty"]; k != nil {
			empty = k
		}
	}
	s := d.newStream()
	expect := func(what string, c code, want ...code) {
		fmt.Printf("%s: %d %s\n", what, c, d.errorName(c))
		if !slices.Contains(want, c) {
			w.add("%s: code %d, want one of %d", what, c, want)
		}
		empty.launch(1, 1, 32, s, address(0), uint32(0))
		d.syncStream(s)
	}
	_, c := d.lookUp(modules[0].handle, "no_such_kernel")
	expect("unknown kernel", c, 500)
	expect("block of 2048 threads", empty.try(1, 1, 2048, s), 1)
	expect("block of 64 threads, launch bound 32", empty.try(1, 1, 64, s), 1, 701)
	expect("grid of no block", empty.try(0, 1, 32, s), 1)
	expect("grid of 70,000 in y", empty.try(1, 70_000, 32, s), 1)
	p := d.memory.longs(1)
	expect("allocation of 1 TiB", d.try("cuMemAlloc_v2", at(p), 1<<40), outOfMemory)
	expect("allocation of nothing", d.try("cuMemAlloc_v2", at(p), 0), 1)
	expect("free of a made-up address", d.try("cuMemFree_v2", 0x1000), 1)
	_, log, c := d.loadPTX([]byte(".version 7.8\n.target sm_80\n.address_size 64\nnonsense;\n"))
	expect("bad PTX", c, 218)
	fmt.Println("  its log:", strings.TrimSpace(log))
	_, log, c = d.loadPTX([]byte(".version 9.9\n.target sm_80\n.address_size 64\n"))
	expect("PTX of a later version", c, 222, 218)
	fmt.Println("  its log:", strings.TrimSpace(log))
	unpinned := newArena(4096)
	expect("register of memory at an odd address",
		d.try("cuMemHostRegister_v2", addressOf(unpinned.bytes)+1, 100, 0), success, 1)
	return w.err()
}

// tryIllegal has a kernel write to an unmapped address, and prints the result of each later call.
func tryIllegal(o *options) error {
	d, kernels, err := openKernels(o)
	if err != nil {
		return err
	}
	s, e := d.newStream(), d.newEvent(false)
	fine := d.alloc(64)
	host, p := newArena(4096).take(64), newArena(4096).longs(1)
	k := kernels["write_at"]
	k.layout.pack(k.buffer, []any{uint64(0x10), uint32(1)})
	seen := false
	show := func(what string, c code) {
		fmt.Printf("%s: %d %s\n", what, c, d.errorName(c))
		seen = seen || c == illegalAccess
	}
	show("launch", k.try(1, 1, 1, s))
	show("record", d.record.call(uintptr(e), uintptr(s)))
	show("wait for the event", d.try("cuEventSynchronize", uintptr(e)))
	show("wait for the stream", d.try("cuStreamSynchronize", uintptr(s)))
	show("set current", d.setCurrent.call(d.context))
	show("launch again", k.try(1, 1, 1, s))
	show("download", d.copyDown.call(addressOf(host), uintptr(fine), 64, uintptr(s)))
	show("alloc", d.try("cuMemAlloc_v2", at(p), 64))
	show("free", d.try("cuMemFree_v2", uintptr(fine)))
	show("reset of the primary context", d.try("cuDevicePrimaryCtxReset_v2", uintptr(d.device)))
	show("set current", d.setCurrent.call(d.context))
	show("alloc", d.try("cuMemAlloc_v2", at(p), 64))
	show("release", d.try("cuDevicePrimaryCtxRelease_v2", uintptr(d.device)))
	show("retain", d.try("cuDevicePrimaryCtxRetain", at(p), uintptr(d.device)))
	show("set current", d.setCurrent.call(uintptr(p[0])))
	show("alloc", d.try("cuMemAlloc_v2", at(p), 64))
	if !seen {
		return errors.New("no call reported the illegal address")
	}
	return nil
}
