// Package ptx holds the kernels of the CUDA backend as PTX, which clang made of ../src, and reads
// their parameter lists. The files and the MANIFEST beside them are committed, so that a build
// needs no compiler for devices:
//
//	go generate ./kernels/cuda/ptx
//
// makes them anew, by tools/ptx, which also checks them. Start at [Kernels]; [Source] has the text
// that a driver loads. What a kernel computes, and what its caller has to guarantee, is in the
// comments of ../src; gpu.h has what holds for all. Everything here is safe for concurrent use:
// nothing is written once the package is there.
package ptx

//go:generate go run ../../../tools/ptx -root ../../..

import (
	"embed"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

//go:embed *.ptx MANIFEST
var files embed.FS

// Param is a parameter of a kernel. It lies at a multiple of its size in the buffer of a launch.
type Param struct {
	Kind         string // as PTX has it: u32, u64, f32, f64; a pointer is a u64
	Offset, Size int    // bytes
}

// Kernel is an entry point of a PTX file.
type Kernel struct {
	Name   string
	File   string // without its extension: "rows"
	Params []Param
	Size   int // bytes of all parameters; nothing is padded behind the last

	// Waits is set for kernels with a barrier or an exchange between threads.
	Waits bool
	// WideLoads and WideStores count the instructions that move 16 bytes from and to global memory,
	// WideShared those from shared memory.
	WideLoads, WideStores, WideShared int
	// Shared is the bytes of shared memory that the file declares for the kernel.
	Shared int
}

// Manifest returns the MANIFEST: what the files were made of, and what is in them.
func Manifest() string {
	text, err := files.ReadFile("MANIFEST")
	if err != nil {
		panic(err) // it is embedded
	}
	return string(text)
}

// Files returns the names of the PTX files, without their extension, ascending.
func Files() []string {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(err)
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".ptx"); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Source returns the text of a PTX file.
func Source(name string) ([]byte, error) { return files.ReadFile(name + ".ptx") }

// Kernels returns all kernels by name.
func Kernels() (map[string]Kernel, error) {
	all := map[string]Kernel{}
	for _, name := range Files() {
		text, err := Source(name)
		if err != nil {
			return nil, err
		}
		kernels, err := Parse(name, string(text))
		if err != nil {
			return nil, err
		}
		for _, k := range kernels {
			if other, ok := all[k.Name]; ok {
				return nil, fmt.Errorf("ptx: %s.ptx and %s.ptx both have %s", other.File, name, k.Name)
			}
			all[k.Name] = k
		}
	}
	return all, nil
}

var (
	entryPattern  = regexp.MustCompile(`(?s)\.entry\s+(\w+)\s*\((.*?)\)(.*?)\n}`)
	paramPattern  = regexp.MustCompile(`^\.param\s+\.([a-z])(\d+)\s+(?:\.ptr\s+.*)?\w+$`)
	sharedPattern = regexp.MustCompile(`(?m)^\.?[^\n]*\.shared\s+\.align\s+\d+\s+\.b(\d+)\s+(\w+)(?:\[(\d+)\])?;`)

	waitPattern       = regexp.MustCompile(`\b(?:bar|barrier|shfl)\.`)
	wideLoadPattern   = regexp.MustCompile(`\bld\.global(?:\.nc)?\.v4\.[a-z]32\b`)
	wideStorePattern  = regexp.MustCompile(`\bst\.global\.v4\.[a-z]32\b`)
	wideSharedPattern = regexp.MustCompile(`\bld\.shared\.v4\.[a-z]32\b`)
)

// Parse reads the kernels of a PTX file, in their order, and refuses what no kernel of ours may
// have: see forbidden.
func Parse(name, text string) ([]Kernel, error) {
	for _, f := range forbidden {
		if found := f.pattern.FindString(text); found != "" {
			return nil, fmt.Errorf("ptx: %s.ptx: %s: %q", name, f.why, found)
		}
	}
	shared, err := sharedArrays(text)
	if err != nil {
		return nil, fmt.Errorf("ptx: %s.ptx: %w", name, err)
	}
	var kernels []Kernel
	for _, match := range entryPattern.FindAllStringSubmatch(text, -1) {
		k := Kernel{Name: match[1], File: name}
		if err := k.readParams(match[2]); err != nil {
			return nil, fmt.Errorf("ptx: %s.ptx: %s: %w", name, k.Name, err)
		}
		body := match[3]
		k.Waits = waitPattern.MatchString(body)
		k.WideLoads = len(wideLoadPattern.FindAllString(body, -1))
		k.WideStores = len(wideStorePattern.FindAllString(body, -1))
		k.WideShared = len(wideSharedPattern.FindAllString(body, -1))
		for array, size := range shared {
			if regexp.MustCompile(`\b` + regexp.QuoteMeta(array) + `\b`).MatchString(body) {
				k.Shared += size
			}
		}
		kernels = append(kernels, k)
	}
	if want := strings.Count(text, ".entry"); len(kernels) != want {
		return nil, fmt.Errorf("ptx: %s.ptx: %d of %d kernels understood", name, len(kernels), want)
	}
	return kernels, nil
}

func (k *Kernel) readParams(list string) error {
	if strings.TrimSpace(list) == "" {
		return nil
	}
	for line := range strings.SplitSeq(list, ",") {
		parts := paramPattern.FindStringSubmatch(strings.TrimSpace(line))
		if parts == nil {
			return fmt.Errorf("parameter %q is of no known form", strings.TrimSpace(line))
		}
		bits, err := strconv.Atoi(parts[2])
		if err != nil {
			return err
		}
		size := bits / 8
		k.Size = (k.Size + size - 1) / size * size
		k.Params = append(k.Params, Param{Kind: parts[1] + parts[2], Offset: k.Size, Size: size})
		k.Size += size
	}
	return nil
}

// sharedArrays returns the bytes of each array in shared memory.
func sharedArrays(text string) (map[string]int, error) {
	arrays := map[string]int{}
	for _, match := range sharedPattern.FindAllStringSubmatch(text, -1) {
		bits, err := strconv.Atoi(match[1])
		if err != nil {
			return nil, err
		}
		n := 1
		if match[3] != "" {
			if n, err = strconv.Atoi(match[3]); err != nil {
				return nil, err
			}
		}
		arrays[match[2]] = bits / 8 * n
	}
	return arrays, nil
}

// forbidden has what no kernel may have, and why.
var forbidden = []struct {
	pattern *regexp.Regexp
	why     string
}{
	{regexp.MustCompile(`\.local\b`), "local memory"},
	{regexp.MustCompile(`\b(?:atom|red)\.[\w.]*\.(?:f16|f16x2|bf16|f32|f64)\b`), "an atomic operation on floats"},
	{regexp.MustCompile(`\btanh\.approx\b`), "tanh.approx, which is too coarse"},
	{regexp.MustCompile(`\b(?:sin|cos|ex2|lg2|rcp|rsqrt|sqrt|div)\.(?:approx|full)[\w.]*`),
		"an approximation, of which a host computes other bits"},
	{regexp.MustCompile(`\bcall(?:\.uni)?\b`), "a call"},
	{regexp.MustCompile(`\.extern\b`), "something that another file would have to define"},
}
