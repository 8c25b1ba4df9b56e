package driver

import (
	"fmt"
	"strings"
)

// Code is a CUresult. It is an error, so that errors.Is(err, ErrOutOfMemory) finds it in an
// [*Error].
type Code uint32

// The codes that somebody asks for, or that have a remedy here.
const (
	ErrInvalidValue         Code = 1
	ErrOutOfMemory          Code = 2
	ErrNotInitialized       Code = 3
	ErrStubLibrary          Code = 34
	ErrDeviceUnavailable    Code = 46
	ErrNoDevice             Code = 100
	ErrInvalidDevice        Code = 101
	ErrInvalidContext       Code = 201
	ErrNoBinaryForGPU       Code = 209
	ErrECC                  Code = 214
	ErrInvalidPTX           Code = 218
	ErrJITCompilerNotFound  Code = 221
	ErrUnsupportedPTX       Code = 222
	ErrOperatingSystem      Code = 304
	ErrNotFound             Code = 500
	ErrNotReady             Code = 600
	ErrIllegalAddress       Code = 700
	ErrLaunchOutOfResources Code = 701
	ErrLaunchTimeout        Code = 702
	ErrContextIsDestroyed   Code = 709
	ErrAlreadyRegistered    Code = 712
	ErrMisalignedAddress    Code = 716
	ErrLaunchFailed         Code = 719
	ErrNotPermitted         Code = 800
	ErrNotSupported         Code = 801
	ErrSystemNotReady       Code = 802
	ErrSystemDriverMismatch Code = 803
	ErrCompatNotSupported   Code = 804
	ErrUnknown              Code = 999
)

func (c Code) Error() string { return fmt.Sprintf("CUDA error %d", uint32(c)) }

// Error is a call that the driver refused, or an earlier error that it reports in this call.
type Error struct {
	Call string // "cuMemAlloc"
	Code Code
	Name string // "CUDA_ERROR_OUT_OF_MEMORY", by the driver; "" if it knows none
	Text string // "out of memory"
	Log  string // of the compiler, where PTX was refused
}

// Error returns the call, the driver's words, a remedy if there is one, and the log.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: CUDA error %d", e.Call, uint32(e.Code))
	if e.Name != "" {
		fmt.Fprintf(&b, " %s", e.Name)
	}
	if e.Text != "" {
		fmt.Fprintf(&b, " (%s)", e.Text)
	}
	if remedy := remedyFor(e.Call, e.Code); remedy != "" {
		fmt.Fprintf(&b, ": %s", remedy)
	}
	if log := strings.TrimSpace(e.Log); log != "" {
		fmt.Fprintf(&b, "\n%s", log)
	}
	return b.String()
}

// Is makes errors.Is work with a [Code].
func (e *Error) Is(target error) bool { return target == e.Code }

// Sticky reports whether the context is lost: every later call fails, and only a new process gets
// another context. On an H100, errors 700, 709 and 201 followed an illegal write
// (tools/results/gpu.md).
func (e *Error) Sticky() bool {
	switch e.Code {
	case ErrECC, ErrIllegalAddress, ErrLaunchTimeout, ErrContextIsDestroyed, ErrMisalignedAddress, ErrLaunchFailed,
		714, 715, 717, 718: // hardware stack error, illegal instruction, invalid address space, invalid pc
		return true
	}
	return false
}

// remedyFor returns what to do about an error that users meet, and "" for others.
func remedyFor(call string, c Code) string {
	locks := call == "cuMemHostRegister" || call == "cuMemHostAlloc"
	if locks && (c == ErrOutOfMemory || c == ErrOperatingSystem || c == ErrNotPermitted) {
		return "the system did not lock that much memory: raise the limit of locked memory " +
			"(ulimit -l; in a container --ulimit memlock=-1), or give the run less memory"
	}
	return remedies[c]
}

const lostContext = "the GPU's context is lost: start the process again, which goes on from its last checkpoint"

var remedies = map[Code]string{
	ErrOutOfMemory: "give the run less device memory, or end other processes on the GPU (nvidia-smi lists them)",
	ErrStubLibrary: "this library is the stub of the CUDA toolkit: put the driver's own libcuda.so.1 before it",
	ErrDeviceUnavailable: "another process has the GPU for itself, or the GPU is lost: see nvidia-smi (compute mode, " +
		"processes)",
	ErrNoDevice:       "no GPU is visible: see nvidia-smi, CUDA_VISIBLE_DEVICES, and whether the container was given one",
	ErrInvalidDevice:  "GPUs are counted from 0, and CUDA_VISIBLE_DEVICES may hide some: nvidia-smi -L lists all",
	ErrInvalidContext: "no context is current on this thread",
	ErrNoBinaryForGPU: "the kernels are not for this GPU: they need compute capability 8.0 or later",
	ErrECC:            "the GPU's memory has a fault that it could not correct; " + lostContext,
	ErrInvalidPTX:     "the driver's compiler refused the kernels: update the NVIDIA driver",
	ErrJITCompilerNotFound: "the driver's compiler is missing: install libnvidia-ptxjitcompiler.so.1 of the same " +
		"driver; a container needs NVIDIA_DRIVER_CAPABILITIES=compute,utility",
	ErrUnsupportedPTX:       "the NVIDIA driver is too old for the kernels: update it",
	ErrIllegalAddress:       "a kernel reached outside its memory; " + lostContext,
	ErrMisalignedAddress:    "a kernel loaded from an odd address; " + lostContext,
	ErrLaunchFailed:         "a kernel failed; " + lostContext,
	ErrLaunchTimeout:        "a kernel took too long for a GPU that drives a display; " + lostContext,
	ErrContextIsDestroyed:   lostContext,
	ErrLaunchOutOfResources: "a kernel asks for more registers, shared memory or parameters than this GPU has",
	ErrNotPermitted:         "the system forbids this call: see the permissions of /dev/nvidia*",
	ErrSystemNotReady:       "the GPU is not ready: see whether nvidia-fabricmanager runs",
	ErrSystemDriverMismatch: "the driver's library and its kernel module differ in version: start the machine again",
	ErrCompatNotSupported:   "the forward-compatibility library is not for this GPU: take it out of LD_LIBRARY_PATH",
	ErrUnknown:              "often the module nvidia_uvm is not loaded: run nvidia-modprobe -u, or start the machine again",
}

// OpenError is a driver library that cannot be opened, or that lacks a function.
type OpenError struct {
	Library string
	Symbol  string // the function that it lacks; "" where the library cannot be opened
	Err     error  // from the dynamic linker; nil where it has only the name
}

func (e *OpenError) Error() string {
	if e.Symbol != "" {
		return fmt.Sprintf("%s has no function %s: the NVIDIA driver is too old: update it", e.Library, e.Symbol)
	}
	return fmt.Sprintf("no NVIDIA driver: %v: install it, or, in a container, have it passed on (nvidia-smi shows it)", e.Err)
}

func (e *OpenError) Unwrap() error { return e.Err }

// VersionError is a driver that is older than the kernels.
type VersionError struct{ Has, Needs int } // as DriverGetVersion returns them

func (e *VersionError) Error() string {
	return fmt.Sprintf("the NVIDIA driver is of CUDA %s, and the kernels need %s: update the driver",
		version(e.Has), version(e.Needs))
}

// version returns "12.9" for 12090.
func version(v int) string { return fmt.Sprintf("%d.%d", v/1000, v%1000/10) }
