package kernels

import "fmt"

// MemoryError is a request for memory that the system refused. NewHostBuf returns it;
// Backend.Alloc, which has no error to return, panics with it, for [RecoverMemory] to catch.
type MemoryError struct {
	Bytes int
	Err   error // what the system said
}

func (e *MemoryError) Error() string {
	return fmt.Sprintf("no memory for a buffer of %d bytes: %v; use smaller caches, batches, fanouts or layers, or a machine with more memory",
		e.Bytes, e.Err)
}

// Unwrap gives Err.
func (e *MemoryError) Unwrap() error { return e.Err }

// DeviceError is a call that a device's driver refused, or a kernel that failed: the driver may say
// so in a later call. The device cannot be used again in this process. A Backend panics with it.
type DeviceError struct {
	Device    string // its name
	Operation string // during which the driver said so
	Err       error
}

func (e *DeviceError) Error() string {
	return fmt.Sprintf("%s: %s: %v", e.Device, e.Operation, e.Err)
}

// Unwrap gives Err.
func (e *DeviceError) Unwrap() error { return e.Err }

// RecoverMemory turns a panic with a *MemoryError or a *DeviceError into *err. Other panics pass.
// Where buffers are allocated, once for each goroutine that does:
//
//	func Run() (err error) {
//		defer kernels.RecoverMemory(&err)
func RecoverMemory(err *error) {
	switch v := recover().(type) {
	case nil:
	case *MemoryError:
		*err = v
	case *DeviceError:
		*err = v
	default:
		panic(v)
	}
}
