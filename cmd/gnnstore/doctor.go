package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/spill"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/tiers"
)

// finding describes a part of the machine: what there is, what commands use of it, and why.
type finding struct {
	Has    string `json:"has"`
	Chosen string `json:"chosen"`
	Why    string `json:"why"`
}

// findings is the output of doctor. Its JSON keys are stable. A limit of 0 stands for no limit.
type findings struct {
	Build versionInfo `json:"build"`
	GPU   struct {
		finding
		Device *kernels.DeviceInfo `json:"device,omitempty"`
	} `json:"gpu"`
	Kernels finding `json:"kernels"`
	BF16    finding `json:"bf16"`
	Threads struct {
		finding
		Processors int `json:"processors"`
		Threads    int `json:"threads"`
	} `json:"threads"`
	Disk struct {
		finding
		Engine disk.Kind `json:"engine"`
	} `json:"disk_engine"`
	Memory struct {
		finding
		Machine   int64 `json:"machine_bytes"`
		Cgroup    int64 `json:"cgroup_bytes"`
		Available int64 `json:"available_bytes"`
		Budget    int64 `json:"budget_bytes"`
	} `json:"memory"`
	Locked  limit   `json:"locked_memory"`
	Space   limit   `json:"address_space"`
	Files   limit   `json:"open_files"`
	Huge    finding `json:"huge_pages"`
	TempDir struct {
		finding
		Path string `json:"path"`
		Free int64  `json:"free_bytes"`
	} `json:"temporary_files"`
}

type limit struct {
	finding
	Limit int64 `json:"limit"`
}

func newDoctor() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Show what this machine has, what commands use of it, and why",
		Long: "Show what this machine has, what commands use of it, and why: the GPU, the kernels of the CPU and their threads,\n" +
			"how the disk is read, memory and its limits, and the directory of temporary files. It writes a file of 64 KiB there\n" +
			"to try the disk, and removes it. What a command cannot use is no failure: the exit code is 0.",
		Example: "  gnnstore doctor\n" +
			"  TMPDIR=/mnt/nvme gnnstore doctor --json",
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			f := examine(cmd.Context())
			if asJSON {
				return printJSON(cmd.OutOrStdout(), f)
			}
			f.print(cmd.OutOrStdout())
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return cmd
}

func examine(ctx context.Context) *findings {
	f := &findings{Build: thisVersion()}
	f.gpu(kernels.Info(kernels.CUDADevice))
	f.processors()
	f.memory()
	f.limits()
	f.tempDir()
	f.disk(ctx)
	return f
}

// print prints each finding in three lines.
func (f *findings) print(w io.Writer) {
	fmt.Fprintln(w, f.Build)
	for _, each := range []struct {
		name string
		finding
	}{
		{"GPU", f.GPU.finding}, {"kernels", f.Kernels}, {"products in bf16", f.BF16},
		{"threads", f.Threads.finding}, {"disk engine", f.Disk.finding},
		{"memory", f.Memory.finding}, {"locked memory", f.Locked.finding}, {"address space", f.Space.finding},
		{"open files", f.Files.finding}, {"huge pages", f.Huge}, {"temporary files", f.TempDir.finding},
	} {
		printf(w, "\n%s\n", each.name)
		for _, line := range [][2]string{{"there is", each.Has}, {"chosen", each.Chosen}, {"why", each.Why}} {
			for i, text := range wrap(line[1], 86) {
				if i > 0 {
					line[0] = ""
				}
				printf(w, "  %-8s  %s\n", line[0], text)
			}
		}
	}
}

// gpu takes the answer of kernels.Info.
func (f *findings) gpu(info kernels.DeviceInfo, known bool, err error) {
	g := &f.GPU
	g.Chosen = kernels.CPUDevice
	switch {
	case !known:
		g.Has, g.Why = "this build has no CUDA; archive gnnstore-cuda has it", "this build computes on the CPU alone"
	case err != nil:
		g.Has, g.Why = "none that can be used: "+oneLine(err), "there is no GPU to use"
	default:
		g.Chosen, g.Why = kernels.CUDADevice, "--device auto takes a GPU that can be used; --device cpu computes on the CPU"
		g.Device = &info
		g.Has = fmt.Sprintf("%s (%s), %s free of %s, the first of %d; CUDA %s",
			info.Name, info.Arch, size(info.Free), size(info.Total), info.Devices, info.CUDA)
		if info.Driver != "" {
			g.Has += ", driver " + info.Driver
		}
		g.Has += fmt.Sprintf(", called by %s; matrix products by %s", info.Provider, info.Products)
		if r := info.Gather; r != nil {
			g.Has += "; " + gatherText(r)
		}
	}
}

// gatherText describes how rows of the host get to a GPU.
func gatherText(r *kernels.GatherRates) string {
	way := "the host gathers rows for a copy to the GPU"
	if r.Reads {
		way = "the GPU reads rows of the host itself, where the host keeps all that are not on the GPU"
	}
	if r.Staged > 0 {
		way += fmt.Sprintf(" (%s/s by a copy", size(int64(r.Staged)))
		if r.Read > 0 {
			way += fmt.Sprintf(", %s/s read over the bus", size(int64(r.Read)))
		}
		way += ")"
	}
	return way + ": " + r.Why
}

func (f *findings) processors() {
	sets := kernels.Sets()
	f.Kernels = finding{
		fmt.Sprintf("sets %v", sets), string(sets[0]), "it is the fastest that this processor runs; --kernels takes another",
	}
	f.BF16 = bf16Finding(f.Build)
	t := &f.Threads
	t.Processors, t.Threads = runtime.NumCPU(), runtime.GOMAXPROCS(0)
	t.Has = fmt.Sprintf("%d processors that this process may run on", t.Processors)
	t.Chosen = fmt.Sprintf("%d threads that run Go at a time", t.Threads)
	switch {
	case os.Getenv("GOMAXPROCS") != "":
		t.Why = "GOMAXPROCS is set"
	case t.Threads < t.Processors:
		t.Why = "the cgroup of this process has no more processor time"
	default:
		t.Why = "one for each processor"
	}
}

// bf16Finding describes the sets with products in bf16.
func bf16Finding(v versionInfo) finding {
	f := finding{
		fmt.Sprintf("sets %v", v.BF16Sets), "f32, unless --matmul bf16 asks for " + string(v.BF16),
		"bf16 is faster and rounds what is multiplied",
	}
	if v.NoAMX != "" {
		f.Has += ": " + v.NoAMX
	}
	if v.BF16 == "" {
		f.Chosen, f.Why = "f32", "bf16 is slower here; --matmul bf16 --kernels "+string(v.BF16Sets[0])+" computes it all the same"
	}
	return f
}

func (f *findings) memory() {
	m := &f.Memory
	machine, cgroup, err := kernels.MemoryLimits()
	if err != nil {
		m.finding = finding{"not known: " + oneLine(err), "none", "commands need --memory"}
		return
	}
	m.Machine, m.Cgroup = machine, cgroup
	m.Available, _ = kernels.AvailableMemory()
	m.Has = fmt.Sprintf("%s, %s of them available", size(machine), size(m.Available))
	m.Why = "a run takes half of the memory unless --memory gives another size"
	if cgroup > 0 {
		m.Has += fmt.Sprintf("; the cgroup of this process may have %s", size(cgroup))
		m.Why += "; the limit of the cgroup counts, since it is the smaller one"
	}
	if m.Budget, err = tiers.Memory(0); err != nil {
		m.Chosen = oneLine(err)
		return
	}
	m.Chosen = fmt.Sprintf("--memory %s", size(m.Budget))
}

func (f *findings) limits() {
	const none = "no limit"
	l := &f.Locked
	l.finding = finding{none, "buffers that the kernel keeps in memory", "reads by io_uring take less processor time with them, and copies to a GPU less time"}
	if most, limited := kernels.LockableMemory(); limited {
		l.Limit, l.Has = most, fmt.Sprintf("a limit of %s (ulimit -l)", size(most))
		l.Why += "; where the limit is too small, reads go on without, and a run says so"
	}
	l = &f.Space
	l.finding = finding{none, "all of it", "commands map datasets, and check beforehand that there is room"}
	if most, left, limited := kernels.AddressSpace(); limited {
		l.Limit, l.Has = most, fmt.Sprintf("a limit of %s (ulimit -v)", size(most))
		l.Chosen = fmt.Sprintf("%s, which the program has not taken itself", size(max(0, left)))
	}
	l = &f.Files
	l.finding = finding{"not known", "the limit of the system", "a run opens each file of its dataset, and once more to read past the page cache"}
	var r unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &r) == nil {
		l.Limit = int64(min(r.Cur, 1<<62))
		l.Has, l.Chosen = fmt.Sprintf("up to %s at a time (ulimit -n)", count(l.Limit)), "all of them"
	}
	f.Huge = map[string]finding{
		"always":  {"always", "pages of 2 MiB", "buffers ask for them, and all other memory gets them as well"},
		"madvise": {"where a program asks (madvise)", "pages of 2 MiB for buffers", "buffers ask for them: fewer page faults"},
		"never":   {"never", "ordinary pages", "the system is set so, by /sys/kernel/mm/transparent_hugepage/enabled"},
		"":        {"no such setting", "ordinary pages", "the system has no transparent huge pages"},
	}[kernels.HugePages()]
}

func (f *findings) tempDir() {
	d := &f.TempDir
	d.Path = systemTmp()
	d.Chosen, d.Has = d.Path, "a disk"
	d.Why = "it is the system's directory of temporary files; TMPDIR, or --tmp of a command, names another"
	if own := os.TempDir(); own != d.Path {
		d.Why = fmt.Sprintf("files of %s would lie in memory; TMPDIR, or --tmp of a command, names another", own)
	}
	if spill.InMemory(d.Path) {
		d.Has = "files in memory (tmpfs), which count as memory"
	}
	usage, err := vfs.Default.GetDiskUsage(d.Path)
	if err != nil {
		d.Has = "none that can be used: " + oneLine(err)
		return
	}
	d.Free = int64(usage.AvailBytes)
	d.Has += fmt.Sprintf(", %s free of %s", size(d.Free), size(int64(usage.TotalBytes)))
}

// disk reads a file of its own as a run does whose data does not fit in memory.
func (f *findings) disk(ctx context.Context) {
	d := &f.Disk
	var why string
	var err error
	if d.Engine, why, err = engineIn(ctx, f.TempDir.Path); err != nil {
		d.finding = finding{"not tried: " + oneLine(err), string(disk.Auto), "a run tries it on its dataset"}
		return
	}
	d.Chosen = fmt.Sprintf("%s, and mmap for files that fit in half of the memory available", d.Engine)
	d.Has = map[disk.Kind]string{
		disk.Uring:    "io_uring, threads that read by pread, and memory maps",
		disk.Pread:    "threads that read by pread, and memory maps; no io_uring",
		disk.Buffered: "reads through the page cache alone",
	}[d.Engine]
	why = cmp.Or(why, "io_uring takes the least processor time")
	d.Why = fmt.Sprintf("tried in %s: %s; --disk-engine takes another", f.TempDir.Path, why)
}

// triedBytes is the size of the file that engineIn reads.
const triedBytes = 64 << 10

// engineIn returns the engine that reads files of a directory past the page cache. If that is not
// io_uring, why has the reasons.
func engineIn(ctx context.Context, dir string) (_ disk.Kind, why string, err error) {
	file, err := os.CreateTemp(dir, "gnnstore-doctor-")
	if err != nil {
		return "", "", err
	}
	defer func() { err = errors.Join(err, file.Close(), os.Remove(file.Name())) }()
	if err := file.Truncate(triedBytes); err != nil {
		return "", "", err
	}
	name := file.Name()
	section := store.SectionFile{File: file, Path: name, Dataset: dir, Section: filepath.Base(name), Size: triedBytes}
	r, err := disk.Open(ctx, []store.SectionFile{section}, disk.Options{Kind: disk.Uring})
	if err != nil {
		return "", "", err
	}
	defer r.Close()
	why = strings.TrimPrefix(strings.TrimPrefix(r.Why(), disk.Asked), "; ")
	return r.Kind(), strings.ReplaceAll(why, name+": ", ""), nil
}
