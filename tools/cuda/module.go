//go:build cuda && linux

package main

import (
	"embed"
	"encoding/binary"
	"fmt"
	"io/fs"
	"math"
	"regexp"
	"strings"
	"time"
)

//go:embed *.ptx
var ptxFiles embed.FS

// param is a parameter of a kernel, as its PTX declares it.
type param struct {
	kind   string // u8, u16, u32, u64, f32, f64
	offset int
	size   int
}

// layout is the parameter list of a kernel. Each parameter lies at a multiple of its size, and
// nothing is padded after the last.
type layout struct {
	params []param
	size   int
}

var (
	entryPattern = regexp.MustCompile(`(?s)\.entry\s+(\w+)\s*\((.*?)\)`)
	paramPattern = regexp.MustCompile(`^\.param\s+\.([a-z]\d+)\s+(?:\.ptr\s+.*)?\w+$`)
)

// layoutsOf reads the parameter lists of all kernels in a PTX file.
func layoutsOf(ptx string) (map[string]layout, error) {
	found := map[string]layout{}
	for _, match := range entryPattern.FindAllStringSubmatch(ptx, -1) {
		var l layout
		for line := range strings.SplitSeq(match[2], ",") {
			line = strings.TrimSpace(line)
			parts := paramPattern.FindStringSubmatch(line)
			if parts == nil {
				return nil, fmt.Errorf("kernel %s: parameter %q is of no known form", match[1], line)
			}
			var bits int
			if _, err := fmt.Sscanf(parts[1][1:], "%d", &bits); err != nil {
				return nil, fmt.Errorf("kernel %s: parameter %q: %w", match[1], line, err)
			}
			size := bits / 8
			l.size = (l.size + size - 1) / size * size
			l.params = append(l.params, param{kind: parts[1], offset: l.size, size: size})
			l.size += size
		}
		found[match[1]] = l
	}
	return found, nil
}

// pack writes args into buffer at the offsets of l. It panics if an argument has the wrong type.
func (l layout) pack(buffer []byte, args []any) {
	if len(args) != len(l.params) {
		panic(fmt.Sprintf("%d arguments for %d parameters", len(args), len(l.params)))
	}
	for i, arg := range args {
		p := l.params[i]
		to := buffer[p.offset:][:p.size]
		kind := ""
		switch v := arg.(type) {
		case uint8:
			kind, to[0] = "u8", v
		case uint16:
			kind = "u16"
			binary.LittleEndian.PutUint16(to, v)
		case uint32:
			kind = "u32"
			binary.LittleEndian.PutUint32(to, v)
		case uint64:
			kind = "u64"
			binary.LittleEndian.PutUint64(to, v)
		case address:
			kind = "u64"
			binary.LittleEndian.PutUint64(to, uint64(v))
		case float32:
			kind = "f32"
			binary.LittleEndian.PutUint32(to, math.Float32bits(v))
		case float64:
			kind = "f64"
			binary.LittleEndian.PutUint64(to, math.Float64bits(v))
		}
		if kind != p.kind {
			panic(fmt.Sprintf("argument %d is a %T, and the kernel takes %s", i, arg, p.kind))
		}
	}
}

// kernel is a loaded function with its parameter list.
type kernel struct {
	d        *driver
	name     string
	function function
	layout   layout
	extra    []uint64 // option list of a launch, off the Go heap
	buffer   []byte   // packed parameters, off the Go heap
}

// newKernel makes a kernel with the buffers of a launch. Each goroutine needs its own: see own.
func newKernel(d *driver, name string, f function, l layout) *kernel {
	a := newArena(4096)
	k := &kernel{d: d, name: name, function: f, layout: l, extra: a.longs(6), buffer: a.take(512)}
	// CU_LAUNCH_PARAM_BUFFER_POINTER is 1, and CU_LAUNCH_PARAM_BUFFER_SIZE is 2.
	k.extra[0], k.extra[1] = 1, uint64(addressOf(k.buffer))
	k.extra[2], k.extra[3] = 2, uint64(at(k.extra[5:]))
	k.extra[5] = uint64(l.size)
	return k
}

// own returns k with other buffers, for another goroutine.
func (k *kernel) own() *kernel { return newKernel(k.d, k.name, k.function, k.layout) }

// try launches k with the parameters in its buffer.
func (k *kernel) try(gridX, gridY, block int, s stream) code {
	return k.d.launch.call(uintptr(k.function), uintptr(gridX), uintptr(gridY), 1, uintptr(block),
		1, 1, 0, uintptr(s), 0, at(k.extra))
}

// launch packs args and launches gridX × gridY blocks. The driver has copied the parameters when it
// returns.
func (k *kernel) launch(gridX, gridY, block int, s stream, args ...any) {
	k.layout.pack(k.buffer, args)
	k.d.must(k.name, k.try(gridX, gridY, block, s))
}

// attribute is cuFuncGetAttribute.
func (k *kernel) attribute(which int) int {
	out := k.d.memory.words(1)
	k.d.do("cuFuncGetAttribute", at(out), uintptr(which), uintptr(k.function))
	return int(int32(out[0]))
}

// module holds the kernels of a PTX file.
type module struct {
	file    string
	handle  uintptr
	kernels map[string]*kernel
	took    time.Duration
	log     string
}

const jitLogBytes = 64 << 10

// loadPTX compiles ptx for the device. log has the compiler's messages, also after success.
func (d *driver) loadPTX(ptx []byte) (handle uintptr, log string, c code) {
	a := newArena(len(ptx) + 2*jitLogBytes + 65536)
	defer a.free()
	source := a.take(len(ptx) + 1)
	copy(source, ptx)
	info, errs := a.take(jitLogBytes), a.take(jitLogBytes)
	// CU_JIT_INFO_LOG_BUFFER, its size, CU_JIT_ERROR_LOG_BUFFER, its size, CU_JIT_LOG_VERBOSE.
	names := a.words(5)
	copy(names, []uint32{3, 4, 5, 6, 12})
	values := a.longs(5)
	values[0], values[1] = uint64(addressOf(info)), jitLogBytes
	values[2], values[3] = uint64(addressOf(errs)), jitLogBytes
	values[4] = 1
	out := a.longs(1)
	c = d.try("cuModuleLoadDataEx", at(out), addressOf(source), 5, at(names), at(values))
	return uintptr(out[0]), cString(errs) + cString(info), c
}

func cString(b []byte) string {
	s, _, _ := strings.Cut(string(b), "\x00")
	return s
}

// load loads an embedded file, and looks up its kernels.
func (d *driver) load(file string) (*module, error) {
	ptx, err := ptxFiles.ReadFile(file)
	if err != nil {
		return nil, err
	}
	layouts, err := layoutsOf(string(ptx))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	begin := time.Now()
	handle, log, c := d.loadPTX(ptx)
	took := time.Since(begin)
	if c != success {
		return nil, fmt.Errorf("%s: %w\n%s", file, d.failure("cuModuleLoadDataEx", c), log)
	}
	m := &module{file: file, handle: handle, kernels: map[string]*kernel{}, took: took, log: log}
	for name, l := range layouts {
		f, c := d.lookUp(handle, name)
		d.must("cuModuleGetFunction "+name, c)
		m.kernels[name] = newKernel(d, name, f, l)
	}
	return m, nil
}

func (d *driver) lookUp(handle uintptr, name string) (function, code) {
	a := newArena(4096)
	defer a.free()
	out, text := a.longs(1), a.take(len(name)+1)
	copy(text, name)
	c := d.try("cuModuleGetFunction", at(out), handle, addressOf(text))
	return function(out[0]), c
}

// loadModules loads every embedded file.
func (d *driver) loadModules() ([]*module, error) {
	files, err := fs.Glob(ptxFiles, "*.ptx")
	if err != nil {
		return nil, err
	}
	var all []*module
	for _, file := range files {
		m, err := d.load(file)
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

// openKernels opens the driver, and loads every kernel.
func openKernels(o *options) (*driver, map[string]*kernel, error) {
	d, err := open(o)
	if err != nil {
		return nil, nil, err
	}
	kernels, err := d.kernelsOf()
	return d, kernels, err
}

// kernelsOf loads every file and returns the kernels by name.
func (d *driver) kernelsOf() (map[string]*kernel, error) {
	modules, err := d.loadModules()
	if err != nil {
		return nil, err
	}
	all := map[string]*kernel{}
	for _, m := range modules {
		for name, k := range m.kernels {
			all[name] = k
		}
	}
	return all, nil
}
