package interp

import (
	"fmt"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
)

// The address space. Global memory lies high, as on a device, and below what Linux maps for a
// process on amd64 (0x7e… to 0x7f…), so that memory of the host can be registered where it is.
// Shared and local memory have windows of their own for generic addresses. Offsets in a window do
// not start at 0, so that a null pointer fails there too.
const (
	globalBase   = 0x7000_0000_0000
	sharedWindow = 0x6000_0000_0000
	localWindow  = 0x5000_0000_0000
	windowBytes  = 1 << 24
	sharedStart  = 1 << 10 // a device keeps the first KiB of a block's shared memory for itself, from sm_80 on
	localStart   = 1 << 8

	guardBytes  = 64 << 10 // at least, between two allocations
	allocAlign  = 256      // as cuMemAlloc gives
	memoryLimit = 4 << 30
)

// Memory is the global memory of a device. Alloc gives addresses that no host has, and leaves a gap
// after each allocation, so that a launch finds each access outside. Register adds memory of the
// caller, such as page-locked memory that kernels read over the bus.
//
// Any goroutines may call its methods, and launch kernels on it, as long as no two use the same
// bytes and one writes them.
type Memory struct {
	// Poison, set before the first Alloc, fills what Alloc returns with 0xff: a NaN as f16, f32 and
	// f64, and a large id as u32. A device does not clear memory either.
	Poison bool
	// Races, set before a launch, makes it look for races in global memory too. Volatile and
	// relaxed accesses may meet others of their kind, as atomic ones may (PTX ISA, "Memory
	// Consistency Model"). Nothing orders two blocks: one that waits for another is a race here.
	Races bool

	mu     sync.Mutex                    // held to change what follows
	ranges atomic.Pointer[[]*allocation] // by address; the slice is never changed, only replaced
	top    uint64                        // where the last allocation and its guard end
	held   int
	loaded map[*Module]map[string]uint64 // addresses of a module's variables
}

// An allocation is memory from Alloc or Register, or a module's variable.
type allocation struct {
	base  uint64
	data  []byte
	name  string // of a variable
	read  bool   // kernels may only read it
	owned bool   // by the Memory: it counts as held
}

// NewMemory returns an empty memory.
func NewMemory() *Memory { return &Memory{top: globalBase} }

// Alloc returns the address of n bytes, a multiple of 256. It fails where more than 4 GiB would be
// held.
func (m *Memory) Alloc(n int) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, err := m.alloc(n)
	if err != nil {
		return 0, err
	}
	if m.Poison {
		for i := range a.data {
			a.data[i] = 0xff
		}
	}
	return a.base, nil
}

func (m *Memory) alloc(n int) (*allocation, error) {
	if n <= 0 || n > memoryLimit-m.held {
		return nil, fmt.Errorf("interp: alloc %d bytes, %d held of %d", n, m.held, memoryLimit)
	}
	a := &allocation{base: max(m.top, globalBase), data: make([]byte, n), owned: true}
	if err := m.insert(a); err != nil {
		return nil, err
	}
	m.held += n
	m.top = (a.base + uint64(n) + guardBytes + allocAlign - 1) / allocAlign * allocAlign
	return a, nil
}

// insert adds a to the ranges.
func (m *Memory) insert(a *allocation) error {
	old := m.snapshot()
	i := search(old, a.base) + 1
	for _, near := range old[max(i-1, 0):min(i+1, len(old))] {
		if a.overlaps(near.base, len(near.data)) {
			return fmt.Errorf("interp: %d bytes at %#x, over the %d at %#x",
				len(a.data), a.base, len(near.data), near.base)
		}
	}
	ranges := slices.Insert(slices.Clip(old), i, a) // Clip: into a new slice
	m.ranges.Store(&ranges)
	return nil
}

func (a *allocation) overlaps(base uint64, n int) bool {
	return a.base < base+uint64(n) && base < a.base+uint64(len(a.data))
}

// Register makes b the memory at addr, which kernels read and write in place, until Free(addr). The
// caller keeps b, which may not move, and orders its own accesses with the launches. Any addr does
// where nothing else lies, such as the address of b's first byte.
func (m *Memory) Register(addr uint64, b []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := &allocation{base: addr, data: b}
	if len(b) == 0 || addr == 0 || addr+uint64(len(b)) < addr ||
		a.overlaps(sharedWindow, windowBytes) || a.overlaps(localWindow, windowBytes) {
		return fmt.Errorf("interp: register %d bytes at %#x", len(b), addr)
	}
	return m.insert(a)
}

// snapshot returns the allocations there are now.
func (m *Memory) snapshot() []*allocation {
	if p := m.ranges.Load(); p != nil {
		return *p
	}
	return nil
}

// Free gives back what Alloc returned, whose address is never used again, or what Register added.
func (m *Memory) Free(addr uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	old := m.snapshot()
	i := search(old, addr)
	if i < 0 || old[i].base != addr || old[i].name != "" {
		return fmt.Errorf("interp: free %#x, which is no allocation", addr)
	}
	ranges := append(append([]*allocation{}, old[:i]...), old[i+1:]...)
	m.ranges.Store(&ranges)
	if old[i].owned {
		m.held -= len(old[i].data)
	}
	return nil
}

// Held returns the bytes that Alloc and modules' variables have taken.
func (m *Memory) Held() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.held
}

// Bytes lends n bytes at addr, all of one allocation. They are valid until it is freed.
func (m *Memory) Bytes(addr uint64, n int) ([]byte, error) {
	ranges := m.snapshot()
	if n < 0 {
		return nil, fmt.Errorf("interp: %d bytes at %#x", n, addr)
	}
	if i := search(ranges, addr); i >= 0 {
		if b, ok := ranges[i].at(addr, n); ok {
			return b, nil
		}
	}
	return nil, &Error{Err: ErrBounds, Detail: nearby(ranges, addr, n)}
}

// Write copies b to addr.
func (m *Memory) Write(addr uint64, b []byte) error {
	dst, err := m.Bytes(addr, len(b))
	copy(dst, b)
	return err
}

// Read copies len(b) bytes from addr.
func (m *Memory) Read(addr uint64, b []byte) error {
	src, err := m.Bytes(addr, len(b))
	copy(b, src)
	return err
}

// search returns the last allocation that starts at or below addr, or -1.
func search(ranges []*allocation, addr uint64) int {
	return sort.Search(len(ranges), func(i int) bool { return ranges[i].base > addr }) - 1
}

func (a *allocation) at(addr uint64, n int) ([]byte, bool) {
	offset := addr - a.base // wraps where addr lies below
	if offset > uint64(len(a.data)) || uint64(n) > uint64(len(a.data))-offset {
		return nil, false
	}
	return a.data[offset : offset+uint64(n)], true
}

// nearby describes an access outside every allocation by those before and after it, if they are
// near.
func nearby(ranges []*allocation, addr uint64, n int) string {
	const near = 1 << 30
	text := fmt.Sprintf("%d bytes at %#x", n, addr)
	i := search(ranges, addr)
	if i >= 0 {
		a := ranges[i]
		end := a.base + uint64(len(a.data))
		if addr < end {
			return text + fmt.Sprintf(", over the end of the %d bytes at %#x", len(a.data), a.base)
		}
		if addr-end < near {
			text += fmt.Sprintf(", %d past the end of the %d bytes at %#x", addr-end, len(a.data), a.base)
		}
	}
	if i+1 < len(ranges) {
		if a := ranges[i+1]; a.base-addr < near {
			text += fmt.Sprintf(", %d before the %d bytes at %#x", a.base-addr, len(a.data), a.base)
		}
	}
	return text
}

// load gives the variables of a module addresses, at its first launch on this memory.
func (m *Memory) load(module *Module) (map[string]uint64, error) {
	if len(module.variables) == 0 {
		return nil, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if addresses, ok := m.loaded[module]; ok {
		return addresses, nil
	}
	addresses := map[string]uint64{}
	for _, v := range module.sortedVariables() {
		if v.space == "shared" || v.extern || v.size == 0 {
			continue
		}
		a, err := m.alloc(v.size)
		if err != nil {
			return nil, err
		}
		a.name, a.read = v.name, v.space == "const"
		copy(a.data, v.init)
		addresses[v.name] = a.base
	}
	if m.loaded == nil {
		m.loaded = map[*Module]map[string]uint64{}
	}
	m.loaded[module] = addresses
	return addresses, nil
}
