package main

import (
	"context"
	"fmt"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/store"
)

// device is the disk that seconds are worked out for.
type device struct {
	disk.Costs
	note string
}

func (d device) String() string {
	return fmt.Sprintf("%.0f reads a second and %.2f GB/s (%s), so that a gap of %.1f KiB costs a read",
		1/d.SecondsPerRead, d.BytesPerSecond/1e9, d.note, float64(d.Gap())/1024)
}

// parseDevice reads READS,BYTES, both a second; an empty text is a device that is still to be
// measured.
func parseDevice(text string) (d device, err error) {
	if text == "" {
		return d, nil
	}
	if d.Costs, err = disk.ParseCosts(text); err != nil {
		return d, fmt.Errorf("-device %w", err)
	}
	d.note = "given"
	return d, nil
}

// measure is the device that was given, or the one under f, past the page cache, as the Readers of
// train measure it: the fastest of a few measurements, since other work on the machine only slows
// it. A table too small to tell by gets what a Reader assumes.
func (d device) measure(ctx context.Context, f *store.Features) (device, error) {
	if d.note != "" {
		return d, nil
	}
	var files []store.SectionFile
	for _, s := range f.Shards() {
		files = append(files, s.SectionFile)
	}
	for range 7 {
		r, err := disk.Open(ctx, files, disk.Options{Direct: true, Probe: true})
		if err != nil {
			return d, err
		}
		c := r.Costs()
		if d.note == "" || c.SecondsPerRead < d.SecondsPerRead {
			d.SecondsPerRead = c.SecondsPerRead
		}
		d.BytesPerSecond, d.note = max(d.BytesPerSecond, c.BytesPerSecond), string(r.Kind())
		r.Close()
	}
	return d, nil
}

func traffic(d cachetier.Disk) disk.Traffic { return disk.Traffic{Reads: d.Reads, Bytes: d.BytesRead} }
