package disk

import (
	"fmt"
	"time"

	"github.com/gnnstore/gnnstore/store"
)

// mapped reads through memory maps. A page is compared with its checksum when it is first lent.
type mapped struct {
	files   []store.SectionFile
	workers int
	faults  Faults
	meter   *meter
}

// adviseAhead is the number of extents requested ahead of the one being served, and so of the reads
// under way.
const adviseAhead = 64

func (m *mapped) read(take func() (Extent, bool), serve func(s Extent, b []byte) error) error {
	var ahead []Extent                  // requested from the system, not served yet
	ends := make([]int64, len(m.files)) // of the extents taken, for each file
	done := false
	next := func() (Extent, bool) {
		for !done && len(ahead) < adviseAhead {
			s, ok := take()
			if !ok {
				done = true
				break
			}
			// An error does no harm: a page that is not read ahead is read when it is touched.
			_ = m.files[s.File].WillNeed(s.Offset, s.Size)
			ends[s.File] = max(ends[s.File], s.Offset+int64(s.Size))
			ahead = append(ahead, s)
		}
		if len(ahead) == 0 {
			return Extent{}, false
		}
		s := ahead[0]
		ahead = ahead[:copy(ahead, ahead[1:])]
		return s, true
	}
	if err := together(m.workers, next, func() worker { return mapWorker{m, serve} }); err != nil {
		return err
	}
	// If a file was truncated within a page, the rest of the page reads as zeros, without a fault.
	for i, end := range ends {
		if end == 0 {
			continue
		}
		f := &m.files[i]
		switch fi, err := f.File.Stat(); {
		case err != nil:
			return fmt.Errorf("read %s: %w", f.Path, err)
		case fi.Size() < end:
			return &store.SectionError{Dataset: f.Dataset, Section: f.Section, Offset: fi.Size(), Err: fmt.Errorf(
				"the file ends here, and had %d bytes: it was truncated while in use; restore it and run gnnstore verify", f.Size)}
		}
	}
	return nil
}

func (m *mapped) alignment() int64 { return store.PageSize }

func (m *mapped) close() {}

type mapWorker struct {
	*mapped
	serve func(s Extent, b []byte) error
}

func (w mapWorker) read(s Extent) error {
	if _, err := w.faults.at(s.File, s.Offset, s.Size).befall(s.Size, nil); err != nil {
		return failed(&w.files[s.File], s, err)
	}
	began := time.Now()
	w.meter.underWay.Add(1)
	defer func() {
		w.meter.underWay.Add(-1)
		lo, hi := hull(s, store.PageSize)
		w.meter.ended(int(hi-lo), time.Since(began))
	}()
	return w.serve(s, w.files[s.File].Mapped(s.Offset, s.Size))
}
