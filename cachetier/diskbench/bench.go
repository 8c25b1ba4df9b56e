// Package diskbench measures how fast the engines of package disk read from a device, and how fast
// fio does.
//
// [Run] reads the largest file of a dataset as training does: rows at random, and from one end to
// the other. Engines take turns, since the speed of a shared device drifts; every [Result] is the
// median of its turns. The file is dropped from the page cache before each turn of an engine.
// Nothing here prints.
package diskbench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/store"
)

// Options configures a measurement. The zero value works.
type Options struct {
	Engines []disk.Kind   // default all
	Sizes   []int         // of rows, in bytes; default 256, 1536 and 4096
	Depth   int           // reads under way; default 64
	Time    time.Duration // of a turn; default 1 s
	Rounds  int           // turns of each engine; default 5
	Fio     string        // the fio program; default: fio is not measured
}

// Fio is the name of fio in Result.Engine.
const Fio = "fio"

// Validate reports every option that cannot be followed.
func (o Options) Validate() error {
	_, err := o.withDefaults()
	return err
}

func (o Options) withDefaults() (Options, error) {
	if len(o.Engines) == 0 {
		o.Engines = disk.Kinds[1:]
	}
	if len(o.Sizes) == 0 {
		o.Sizes = []int{256, 1536, 4096}
	}
	if o.Depth == 0 {
		o.Depth = 64
	}
	if o.Time == 0 {
		o.Time = time.Second
	}
	if o.Rounds == 0 {
		o.Rounds = 5
	}
	var errs []error
	for _, e := range o.Engines {
		if errs = append(errs, e.Validate()); e == disk.Auto || e == "" {
			errs = append(errs, errors.New("engine auto: name the engines to measure"))
		}
	}
	for _, size := range o.Sizes {
		if size < 1 || size > disk.MaxExtent {
			errs = append(errs, fmt.Errorf("rows of %d bytes: from 1 to %d", size, disk.MaxExtent))
		}
	}
	if o.Depth < 1 || o.Depth > disk.MaxDepth {
		errs = append(errs, fmt.Errorf("%d reads at a time: from 1 to %d", o.Depth, disk.MaxDepth))
	}
	if o.Time < time.Millisecond || o.Time > time.Hour {
		errs = append(errs, fmt.Errorf("turns of %v: from 1ms to 1h", o.Time))
	}
	if o.Rounds < 1 || o.Rounds > 1000 {
		errs = append(errs, fmt.Errorf("%d rounds: from 1 to 1000", o.Rounds))
	}
	return o, errors.Join(errs...)
}

// Result is the performance of one engine at one kind of read: medians of its turns.
type Result struct {
	Engine      string  `json:"engine"`
	Read        string  `json:"read"`  // random or sequential
	Size        int     `json:"size"`  // bytes that a read wants
	Asked       int     `json:"asked"` // mean bytes that a read asks of the device
	Depth       int     `json:"depth"`
	Turns       int     `json:"turns"`
	Reads       float64 `json:"reads_per_second"`
	Bytes       float64 `json:"bytes_per_second"` // asked of the device
	MicrosOfCPU float64 `json:"cpu_us_per_read"`  // of all threads, in and out of the kernel
	P50         float64 `json:"p50_us"`
	P99         float64 `json:"p99_us"`
	OfFio       float64 `json:"of_fio,omitempty"` // Reads divided by fio's, at the same request size; 0 without fio
	Cached      bool    `json:"page_cache"`       // reads go through the page cache, so some find what an earlier one brought
}

// String formats r as go test prints a benchmark, so that benchstat reads it.
func (r Result) String() string {
	s := fmt.Sprintf("BenchmarkDisk/read=%s/size=%d/depth=%d/engine=%s\t%8d\t%10.0f ns/op\t%9.0f reads/s\t%8.1f MB/s",
		r.Read, r.Size, r.Depth, r.Engine, r.Turns, 1e9/r.Reads, r.Reads, r.Bytes/1e6)
	s += fmt.Sprintf("\t%6d asked-B/read\t%6.2f cpu-µs/read\t%7.0f p50-µs\t%7.0f p99-µs", r.Asked, r.MicrosOfCPU, r.P50, r.P99)
	if r.OfFio > 0 {
		s += fmt.Sprintf("\t%6.2f ×fio", r.OfFio)
	}
	return s
}

// turn is the performance of one engine in one turn.
type turn struct {
	reads, bytes  float64
	seconds       float64
	cpu, p50, p99 float64 // µs a read: processor time, and quantiles of latency
}

// Run measures with the largest file of the dataset at path. It calls started with that file, and
// with notes on engines that do not work here, or not fully. Then it calls each with every result
// as soon as the last turn for it is over. The end of ctx ends Run early, with an error.
func Run(
	ctx context.Context, path string, o Options, started func(file string, size int64, notes []string), each func(Result),
) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	b := bench{Options: o, path: path}
	err = b.withFile(func(f store.SectionFile) error {
		notes, err := b.survey(ctx, f)
		if err == nil {
			started(f.Path, f.Size, notes)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, size := range b.Sizes {
		if err := b.compare(ctx, random, size, each); err != nil {
			return err
		}
	}
	return b.compare(ctx, sequential, disk.MaxExtent, each)
}

const (
	random     = "random"
	sequential = "sequential"
)

// bench is a measurement under way.
type bench struct {
	Options
	path  string
	block int64 // bytes: the largest block that an engine reads
	seed  uint64
}

// largest returns the largest file of a dataset that training reads. A file smaller than
// disk.MaxExtent is an error.
func largest(d *store.Dataset) (store.SectionFile, error) {
	var best store.SectionFile
	take := func(f store.SectionFile) {
		if f.Size > best.Size {
			best = f
		}
	}
	m := d.Manifest()
	for i := range m.Tables {
		for _, s := range d.Features(i).Shards() {
			take(s.SectionFile)
		}
	}
	for i := range m.Relations {
		_, neighbors := d.Graph(i).Sections()
		take(neighbors)
	}
	if best.Size < disk.MaxExtent {
		return best, fmt.Errorf("%s: its largest file has %d bytes; measuring wants a dataset of gigabytes, "+
			"as gnnstore generate makes", d.Path(), best.Size)
	}
	return best, nil
}

// withFile opens the dataset, calls use with the file to read, and closes the dataset.
func (b *bench) withFile(use func(f store.SectionFile) error) error {
	d, err := store.Open(b.path)
	if err != nil {
		return err
	}
	defer d.Close()
	f, err := largest(d)
	if err != nil {
		return err
	}
	return use(f)
}

// survey drops from b.Engines what does not work here, and fio if it would not work. notes gives
// the reasons.
func (b *bench) survey(ctx context.Context, f store.SectionFile) (notes []string, err error) {
	var work []disk.Kind
	for _, kind := range b.Engines {
		works, why, err := b.try(ctx, f, kind)
		if err != nil {
			return nil, err
		}
		if works {
			work = append(work, kind)
		}
		if !works || why != disk.Asked {
			notes = append(notes, fmt.Sprintf("%s: %s", kind, why))
		}
	}
	if b.Engines = work; len(work) == 0 {
		return nil, fmt.Errorf("no engine works here: %s", notes[0])
	}
	if b.Fio == "" {
		return notes, nil
	}
	// fio bypasses the page cache, which works where Pread does.
	works, why, err := b.try(ctx, f, disk.Pread)
	if !works {
		b.Fio = ""
		notes = append(notes, fmt.Sprintf("%s: %s", Fio, why))
	}
	return notes, err
}

// try reports whether an engine can read f, and why it can or cannot. It raises b.block to the
// block size of that engine.
func (b *bench) try(ctx context.Context, f store.SectionFile, kind disk.Kind) (works bool, why string, err error) {
	r, err := disk.Open(ctx, []store.SectionFile{f}, disk.Options{Kind: kind, Depth: b.Depth})
	if err != nil {
		return false, "", err
	}
	defer r.Close()
	b.block = max(b.block, r.Block())
	return r.Kind() == kind, r.Why(), nil
}

// compare measures one kind of read: the engines and fio take turns, and then each is called with
// every result.
func (b *bench) compare(ctx context.Context, read string, size int, each func(Result)) error {
	turns := make([][]turn, len(b.Engines))
	var fio []turn
	for range b.Rounds {
		b.seed++
		for i, kind := range b.Engines {
			if err := ctx.Err(); err != nil {
				return err
			}
			// Open the file anew for each turn, since pages stay in the page cache as long as
			// something maps them.
			err := b.withFile(func(f store.SectionFile) error {
				t, err := b.measure(ctx, f, kind, read, size)
				turns[i] = append(turns[i], t)
				return err
			})
			if err != nil {
				return err
			}
		}
		if b.Fio == "" {
			continue
		}
		err := b.withFile(func(f store.SectionFile) error {
			t, err := b.runFio(ctx, f, read, size)
			fio = append(fio, t)
			return err
		})
		if err != nil {
			return err
		}
	}
	var top float64
	if fio != nil {
		r := b.result(Fio, read, size, fio)
		top = r.Reads
		each(r)
	}
	for i, kind := range b.Engines {
		r := b.result(string(kind), read, size, turns[i])
		if top > 0 {
			r.OfFio = r.Reads / top
		}
		each(r)
	}
	return nil
}

// result returns the medians of turns.
func (b *bench) result(engine, read string, size int, turns []turn) Result {
	median := func(of func(t turn) float64) float64 {
		all := make([]float64, len(turns))
		for i, t := range turns {
			all[i] = of(t)
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	return Result{
		Engine: engine, Read: read, Size: size, Depth: b.Depth, Turns: len(turns),
		Asked:       int(median(func(t turn) float64 { return t.bytes / t.reads })),
		Reads:       median(func(t turn) float64 { return t.reads / t.seconds }),
		Bytes:       median(func(t turn) float64 { return t.bytes / t.seconds }),
		MicrosOfCPU: median(func(t turn) float64 { return t.cpu }),
		P50:         median(func(t turn) float64 { return t.p50 }),
		P99:         median(func(t turn) float64 { return t.p99 }),
		Cached:      engine == string(disk.Buffered) || engine == string(disk.Mmap),
	}
}

// measure runs one turn of an engine. The end of ctx ends it early, with an error.
func (b *bench) measure(ctx context.Context, f store.SectionFile, kind disk.Kind, read string, size int) (turn, error) {
	if err := dropPages(f.File); err != nil {
		return turn{}, fmt.Errorf("%s: take it out of the page cache: %w", f.Path, err)
	}
	r, err := disk.Open(ctx, []store.SectionFile{f}, disk.Options{Kind: kind, Depth: b.Depth})
	if err != nil {
		return turn{}, err
	}
	defer r.Close()
	rng, n := rand.New(rand.NewPCG(b.seed, 1)), int64(0)
	rows := f.Size / int64(size)
	first := rng.Int64N(rows)
	buffers := sync.Pool{New: func() any { b := make([]byte, size); return &b }}
	cpu, began := cpuTime(), time.Now()
	traffic, err := r.Read(ctx, func() (disk.Extent, bool) {
		if time.Since(began) > b.Time {
			return disk.Extent{}, false
		}
		row := (first + n) % rows
		if n++; read == random {
			row = rng.Int64N(rows)
		}
		return disk.Extent{Offset: row * int64(size), Size: size}, true
	}, func(_ disk.Extent, lent []byte) error {
		to := buffers.Get().(*[]byte) // copy the row, as callers do
		copy(*to, lent)
		buffers.Put(to)
		return nil
	})
	if err != nil {
		return turn{}, err
	}
	if traffic.Reads == 0 {
		return turn{}, errors.New("no read fits into a turn: take longer ones")
	}
	live := r.Live()
	return turn{
		reads: float64(traffic.Reads), bytes: float64(traffic.Bytes), seconds: traffic.Seconds,
		cpu: (cpuTime() - cpu) * 1e6 / float64(traffic.Reads), p50: micros(live.P50), p99: micros(live.P99),
	}, nil
}

// micros returns d in µs.
func micros(d time.Duration) float64 { return float64(d) / 1e3 }

// cpuTime returns the processor time that this process has used so far, in seconds.
func cpuTime() float64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
