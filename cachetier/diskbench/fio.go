package diskbench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/gnnstore/gnnstore/store"
)

// fioReport is the part of fio's JSON output that is used here.
type fioReport struct {
	Jobs []struct {
		Error  int     `json:"error"`
		User   float64 `json:"usr_cpu"` // percent of the job's time
		System float64 `json:"sys_cpu"`
		Millis float64 `json:"job_runtime"`
		Read   struct {
			Reads   float64 `json:"total_ios"`
			Bytes   float64 `json:"io_bytes"`
			Millis  float64 `json:"runtime"`
			Latency struct {
				Percentile map[string]float64 `json:"percentile"` // ns, by names like 99.000000
			} `json:"clat_ns"`
		} `json:"read"`
	} `json:"jobs"`
}

// runFio runs one turn of fio, whose reads have size bytes, rounded up to whole blocks. The end of
// ctx kills the process; the job is a thread of the process, so it ends too.
func (b *bench) runFio(ctx context.Context, f store.SectionFile, read string, size int) (t turn, err error) {
	pattern := "randread"
	if read == sequential {
		pattern = "read"
	}
	for _, engine := range []string{"io_uring", "libaio"} {
		cmd := exec.CommandContext(ctx, b.Fio, "--name=gnnstore", "--thread", "--readonly", "--direct=1", "--time_based",
			"--output-format=json", "--filename="+strings.ReplaceAll(f.Path, ":", `\:`), "--rw="+pattern, "--ioengine="+engine,
			fmt.Sprint("--randseed=", b.seed), fmt.Sprint("--bs=", (int64(size)+b.block-1)/b.block*b.block),
			fmt.Sprint("--iodepth=", b.Depth), fmt.Sprintf("--runtime=%dms", b.Time.Milliseconds()))
		var out, trouble bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &trouble
		if err = cmd.Run(); err == nil {
			t, err = parseFio(out.Bytes())
		}
		if err == nil || ctx.Err() != nil {
			return t, ctx.Err()
		}
		if line, _, _ := strings.Cut(strings.TrimSpace(trouble.String()), "\n"); line != "" {
			err = fmt.Errorf("%w: %s", err, line)
		}
	}
	return turn{}, fmt.Errorf("%s: %w; name another fio, or none", b.Fio, err)
}

// parseFio returns the turn that fio's output describes.
func parseFio(out []byte) (turn, error) {
	if at := bytes.IndexByte(out, '{'); at > 0 { // fio prints notes first
		out = out[at:]
	}
	var report fioReport
	if err := json.Unmarshal(out, &report); err != nil {
		return turn{}, fmt.Errorf("output: %w", err)
	}
	if len(report.Jobs) != 1 {
		return turn{}, fmt.Errorf("output: %d jobs, want 1", len(report.Jobs))
	}
	job := report.Jobs[0]
	if r := job.Read; job.Error != 0 || !(r.Reads > 0 && r.Millis > 0) {
		return turn{}, errors.New("output: the job read nothing")
	}
	return turn{
		reads: job.Read.Reads, bytes: job.Read.Bytes, seconds: job.Read.Millis / 1e3,
		cpu: (job.User + job.System) / 100 * job.Millis * 1e3 / job.Read.Reads,
		p50: job.Read.Latency.Percentile["50.000000"] / 1e3, p99: job.Read.Latency.Percentile["99.000000"] / 1e3,
	}, nil
}
