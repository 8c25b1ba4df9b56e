package resume

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/gnnstore/gnnstore/tools/cli"
)

// Ingest makes datasets and kills what makes them. Its methods run one at a time.
type Ingest struct {
	Binary cli.Binary
	// Args returns the arguments of gnnstore ingest or generate that make a dataset at out,
	// spilling to tmp.
	Args func(out, tmp string) []string
	Dir  string    // holds the datasets
	Out  io.Writer // a line a kill

	out, tmp string // of [Ingest.Args]
	seal     string // of the undisturbed dataset
	passes   []string
	lines    int // of progress
}

// made has the fields that ingest and generate print.
type made struct {
	Seal    string
	Resumed int
	Passes  []struct{ Name string }
}

// begin makes a dataset that nothing disturbs.
func (p *Ingest) begin(ctx context.Context) error {
	p.out, p.tmp = filepath.Join(p.Dir, "killed.gnn"), filepath.Join(p.Dir, "tmp")
	p.passes, p.lines = nil, 0
	if err := os.MkdirAll(p.tmp, 0o777); err != nil {
		return err
	}
	printed, _, err := p.kill(ctx, func(lines <-chan string) bool {
		for range lines {
			p.lines++
		}
		return false
	})
	if err != nil {
		return err
	}
	var whole made
	if err := json.Unmarshal(printed, &whole); err != nil {
		return fmt.Errorf("gnnstore --json: %w in %.200q", err, printed)
	}
	p.seal = whole.Seal
	for _, pass := range whole.Passes {
		p.passes = append(p.passes, pass.Name)
	}
	return p.whole(ctx)
}

// KillInPasses makes a dataset undisturbed. Then it kills the making of the like in every pass,
// once something is written in it, and again in every pass of what goes on, and lets it come to an
// end: alone after one kill each, unless chain is all that is wanted, and after all of them. Seals
// must be equal, verify content, and nothing else left.
func (p *Ingest) KillInPasses(ctx context.Context, chainOnly bool) error {
	if err := p.begin(ctx); err != nil {
		return err
	}
	tries := [][]string{p.passes[:len(p.passes)-1]} // after the last there may be nothing to go on with
	if !chainOnly {
		tries = append(slices.Collect(slices.Chunk(p.passes, 1)), tries...)
	}
	resumed := 0
	for _, passes := range tries {
		for _, pass := range passes {
			_, killed, err := p.kill(ctx, p.inPass(pass))
			if err != nil {
				return err
			}
			fmt.Fprintf(p.Out, "ingest: in %q: killed %v\n", pass, killed)
			if !killed { // it was done, or came to its end first
				break
			}
		}
		n, err := p.finish(ctx)
		if err != nil {
			return err
		}
		resumed += n
	}
	if resumed == 0 {
		return errors.New("no ingest went on from another: nothing was proved; make it take longer")
	}
	return nil
}

// KillAtLines makes a dataset undisturbed. Then it kills the making of the like at so many of its
// lines of progress, and lets each come to an end as [Ingest.KillInPasses] does.
func (p *Ingest) KillAtLines(ctx context.Context, times int) error {
	if err := p.begin(ctx); err != nil {
		return err
	}
	halves := 0 // kills that left something behind
	points := pick(p.lines, times)
	for _, nth := range points {
		_, killed, err := p.kill(ctx, atLine(nth))
		if err != nil {
			return err
		}
		left := exists(p.out + ".partial")
		if left {
			halves++
		}
		fmt.Fprintf(p.Out, "ingest: line %d of %d: killed %v, partial dataset left %v\n", nth+1, p.lines, killed, left)
		if _, err := p.finish(ctx); err != nil {
			return err
		}
	}
	if halves == 0 {
		return fmt.Errorf("none of %d kills left a partial dataset: nothing was proved", len(points))
	}
	return nil
}

// pick spreads at most k points over n lines, the first and the last among them.
func pick(n, k int) []int {
	k = min(n, k)
	points := make([]int, k)
	for i := range points {
		points[i] = i * (n - 1) / max(k-1, 1)
	}
	return points
}

// kill is [Kill] of what makes the dataset.
func (p *Ingest) kill(ctx context.Context, at Moment) (printed []byte, killed bool, err error) {
	return Kill(ctx, p.Binary.Command(ctx, append(p.Args(p.out, p.tmp), "--json")...), at)
}

// inPass is the Moment in a pass when more is on disk than when it began, or when another begins.
func (p *Ingest) inPass(pass string) Moment {
	began, inside := int64(0), false
	return until(func(line string) bool {
		if inside && (slices.Contains(p.passes, line) || line == "" && p.onDisk() > began) {
			return true
		}
		if line == pass {
			inside, began = true, p.onDisk()
		}
		return false
	})
}

// finish makes the dataset from what kills left, unless they came after its end, and looks at it.
// It returns the passes that were not made again.
func (p *Ingest) finish(ctx context.Context) (resumed int, err error) {
	var got made
	if !exists(p.out) {
		if err := p.Binary.JSON(ctx, &got, p.Args(p.out, p.tmp)...); err != nil {
			return 0, err
		}
		fmt.Fprintf(p.Out, "ingest: went on after %d of %d passes\n", got.Resumed, len(got.Passes))
		if len(got.Passes) != len(p.passes) {
			return 0, fmt.Errorf("%s: %d passes after kills, want %d", p.out, len(got.Passes), len(p.passes))
		}
	}
	return got.Resumed, p.whole(ctx)
}

// whole verifies the dataset, wants nothing beside it, and removes it.
func (p *Ingest) whole(ctx context.Context) error {
	if err := p.Binary.Run(ctx, "verify", p.out); err != nil {
		return err
	}
	var got cli.Inspected
	if err := p.Binary.JSON(ctx, &got, "inspect", p.out); err != nil {
		return err
	}
	if got.Seal != p.seal || p.seal == "" {
		return fmt.Errorf("%s: seal %s, want %s", p.out, got.Seal, p.seal)
	}
	if exists(p.out + ".partial") {
		return fmt.Errorf("%s.partial is left beside a whole dataset", p.out)
	}
	if left, err := os.ReadDir(p.tmp); err != nil || len(left) > 0 {
		return errors.Join(err, fmt.Errorf("%s: %d files or directories are left", p.tmp, len(left)))
	}
	return os.RemoveAll(p.out)
}

// onDisk returns the bytes that the dataset under way and the spill take now. A running ingest
// changes them.
func (p *Ingest) onDisk() (bytes int64) {
	for _, dir := range []string{p.out + ".partial", p.tmp} {
		_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				if fi, err := d.Info(); err == nil {
					bytes += fi.Size()
				}
			}
			return nil // it may be gone, which is nobody's fault
		})
	}
	return bytes
}
