package main

import (
	"fmt"

	"github.com/gnnstore/gnnstore/kernels"
)

// mapDataset refuses a dataset whose map, beside so much memory, ulimit -v has no room for; a
// memory of 0 is not told.
func mapDataset(path string, memory int64) error {
	if _, _, limited := kernels.AddressSpace(); !limited {
		return nil
	}
	mapped := bytesIn(path) // store.Open says what is wrong with it
	what, orElse := fmt.Sprintf("%s has %s to map", path, size(mapped)), ""
	if memory > 0 {
		what, orElse = what+fmt.Sprintf(", and --memory is %s", size(memory)), lessMemory
	}
	return addressSpace(what, mapped+memory, orElse)
}

const lessMemory = "; or give less --memory"

// addressSpace returns an error if ulimit -v has no room for need bytes, before an allocation fails
// somewhere. what begins the message, and orElse ends it.
func addressSpace(what string, need int64, orElse string) error {
	limit, left, limited := kernels.AddressSpace()
	if !limited || need <= left {
		return nil
	}
	return fmt.Errorf("%s: ulimit -v allows %s of address space, and %s of it are left beside the program; raise it by %s, or set it to unlimited%s",
		what, size(limit), size(max(0, left)), size(need-left), orElse)
}
