// Exchange sends messages between processes that a launcher of MPI has started, as workers do, and
// prints a line of JSON from worker 0. tools/scale -only coop builds and starts it.
//
//	mpirun -n 2 exchange MIB TIMES SECONDS
//
// TIMES messages of MIB MiB go from each to each. Before, worker 0 comes SECONDS late, and the
// others wait for it.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/gnnstore/gnnstore/train/dist"
)

// Report has the figures that worker 0 prints.
type Report struct {
	Workers int     `json:"workers"`
	MiB     float64 `json:"mib"` // of a message
	Seconds float64 `json:"seconds"`
	// Sent is bytes a second that a worker sends, on average.
	Sent float64 `json:"sent_per_second"`
	// Waiting is the largest share of a core that a waiting process takes.
	Waiting float64 `json:"cores_waiting"`
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "exchange:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("want MIB TIMES SECONDS, and not %q", args)
	}
	var numbers [3]float64
	for i, text := range args {
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return err
		}
		numbers[i] = n
	}
	host, err := dist.Open(dist.Options{Way: dist.MPI, Timeout: time.Minute, Getenv: os.Getenv})
	if err != nil {
		return err
	}
	defer host.Close()
	return host.Run(context.Background(), func(ctx context.Context, g *dist.Group) error {
		return exchange(ctx, g, numbers[0], int(numbers[1]), time.Duration(numbers[2]*float64(time.Second)))
	})
}

func exchange(ctx context.Context, g *dist.Group, mib float64, times int, late time.Duration) error {
	send := make([][]byte, g.Size())
	for q := range send {
		if q != g.Rank() {
			send[q] = make([]byte, int(mib*(1<<20)))
		}
	}
	if _, err := g.Exchange(ctx, dist.At{}, send); err != nil { // makes the connections
		return err
	}
	before := processor()
	if g.Rank() == 0 {
		time.Sleep(late)
	}
	own, err := json.Marshal((processor() - before).Seconds())
	if err != nil {
		return err
	}
	if _, err := g.Gather(ctx, dist.At{}, own); err != nil {
		return err
	}
	if own, err = json.Marshal((processor() - before).Seconds()); err != nil {
		return err
	}
	all, err := g.Gather(ctx, dist.At{}, own)
	if err != nil {
		return err
	}
	began := time.Now()
	for range times {
		if _, err := g.Exchange(ctx, dist.At{}, send); err != nil {
			return err
		}
	}
	r := Report{Workers: g.Size(), MiB: mib, Seconds: time.Since(began).Seconds()}
	r.Sent = float64(g.Size()-1) * mib * (1 << 20) * float64(times) / r.Seconds
	for _, text := range all[1:] {
		var busy float64
		if err := json.Unmarshal(text, &busy); err != nil {
			return err
		}
		r.Waiting = max(r.Waiting, busy/late.Seconds())
	}
	if g.Rank() > 0 {
		return nil
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

// processor returns the processor time that the process has taken.
func processor() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
