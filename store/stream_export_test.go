package store

import "strings"

// CheckStream checks the contents of a stream's file, named STREAM/FILE, as verify does once the
// checksums agree.
func (d *Dataset) CheckStream(file string) error {
	for i := range d.manifest.Streams {
		e := d.Events(i)
		if !strings.HasPrefix(file, e.Stream.Name+"/") {
			continue
		}
		switch strings.TrimPrefix(file, e.Stream.Name+"/") {
		case "src.u32", "dst.u32":
			e.Ends(0, e.Len())
			return nil
		case "time.f64":
			return e.checkTimes()
		case "label.i32":
			return e.checkLabels()
		case "offsets.u64":
			if err := checkOffsets(cast[uint64](e.at.payload()), 2*uint64(e.Len()), "half-edges"); err != nil {
				return err
			}
		case "negative-offsets.u64":
			return e.checkNegativeOffsets()
		case "negatives.u32":
			return e.checkNegatives()
		case "node-labels/node.u32", "node-labels/time.f64", "node-labels/class.i32":
			return e.checkNodeLabels()
		}
		return e.checkNear()
	}
	return nil
}
