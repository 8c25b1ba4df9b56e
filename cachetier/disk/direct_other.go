//go:build !linux

package disk

import (
	"errors"

	"github.com/gnnstore/gnnstore/store"
)

// direct fails: each system has its own way past the page cache, and only Linux's is known here.
func direct([]store.SectionFile) (source, error) {
	return source{}, errors.New("reading past the page cache is not known on this system")
}

func (src *source) closeOwn() {}
