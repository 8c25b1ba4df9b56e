//go:build cuda && linux

package main

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
)

// stages are the subcommands.
var stages = map[string]func(*options) error{
	"device":   showDevice,
	"contexts": tryContexts,
	"load":     loadAll,
	"pack":     tryPacking,
	"errors":   tryErrors,
	"illegal":  tryIllegal,
	"memory":   timeMemory,
	"order":    tryOrder,
	"kernels":  checkKernels,
	"speed":    timeKernels,
}

type options struct {
	library string // libcuda
	cublas  string // directory of libcublas; "" leaves it out
	small   bool   // sizes for a driver without a GPU behind it
}

// size returns full, or small where -small is set.
func (o *options) size(full, small int) int {
	if o.small {
		return small
	}
	return full
}

func main() {
	var o options
	flag.StringVar(&o.library, "library", "libcuda.so.1", "`file` of the driver")
	flag.StringVar(&o.cublas, "cublas", "", "`directory` of libcublas.so; default: not used")
	flag.BoolVar(&o.small, "small", false, "small sizes, for a driver without a GPU behind it")
	flag.Parse()
	stage, known := stages[flag.Arg(0)]
	if !known || flag.NArg() != 1 {
		names := slices.Sorted(maps.Keys(stages))
		fmt.Fprintln(os.Stderr, "usage: look [flags]", strings.Join(names, " | "))
		os.Exit(2)
	}
	// A context is current on one thread, so the stage stays on this one.
	runtime.LockOSThread()
	if err := run(stage, &o); err != nil {
		fmt.Println("FAIL", flag.Arg(0)+":", err)
		os.Exit(1)
	}
}

// run runs stage, and returns the panic of a failed call as an error. A stage makes hundreds of
// calls, and ends at the first that fails.
func run(stage func(*options) error, o *options) (err error) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case failure:
			err = v
		default:
			panic(v)
		}
	}()
	return stage(o)
}

// wrong collects the errors of a stage that goes on after one.
type wrong struct{ errs []error }

func (w *wrong) add(format string, args ...any) {
	w.errs = append(w.errs, fmt.Errorf(format, args...))
}

func (w *wrong) err() error { return errors.Join(w.errs...) }
