package main

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"strconv"

	"github.com/gnnstore/gnnstore/train/graph"
	"github.com/gnnstore/gnnstore/train/run"
)

// readWindows are the numbers of steps that are read together, by hand; 0 is the automatic one.
var readWindows = []int{1, 8, 64, 256, 0}

// compareWindows trains the same steps under the same --memory with each read window, from empty
// caches, and prints what the disk did: as timed, and by what reads and bytes were measured to cost
// before, which other work on the machine leaves alone.
func compareWindows(ctx context.Context, c *comparison) error {
	fmt.Fprintf(c.out, "%s, --memory %s, --batch %d, %d steps from empty caches; the device: %s.\n\n",
		c.base(), c.memory, c.batch, c.steps, c.device)
	tableHead(c.out, "| --window | steps a window | s a step | rows a step | cold rows | reads | MB | amplification | device ms, rows | of lists | of both, by the model | planned: window | device ms, rows | drawing ms |")
	best, automatic := math.Inf(1), 0.0
	for _, w := range readWindows {
		args := []string{"--memory", c.memory, "--window", strconv.Itoa(w)}
		var plan graph.Plan
		if err := c.binary.JSON(ctx, &plan, c.train(append(args, "--plan")...)...); err != nil {
			return err
		}
		var r run.Result
		if err := c.binary.JSON(ctx, &r, c.train(append(args, "--run", filepath.Join(c.tmp, fmt.Sprintf("window-%d", w)))...)...); err != nil {
			return err
		}
		n, lists := float64(r.Epochs[0].Steps), r.Topology.Disk
		model := 1e3 * (c.device.Seconds(traffic(r.Disk)) + c.device.Seconds(traffic(lists))) / n
		name := strconv.Itoa(w)
		if w == 0 {
			name, automatic = "automatic", model
		} else {
			best = min(best, model)
		}
		fmt.Fprintf(c.out, "| %s | %.1f | %.3f | %.0f | %.0f | %.0f | %.1f | %.1f | %.1f | %.1f | %.1f | %d | %.1f | %.1f |\n", name,
			n/float64(max(r.Windows, 1)), r.Epochs[0].Seconds/n, float64(r.InputRows)/n, float64(r.Disk.Rows)/n, float64(r.Disk.Reads)/n,
			float64(r.Disk.BytesRead)/n/1e6, r.Disk.Amplification, 1e3*r.Disk.Seconds/n, 1e3*lists.Seconds/n, model,
			plan.Window, 1e3*plan.LoadSeconds, 1e3*plan.SampleSeconds)
	}
	fmt.Fprintf(c.out, "\nBy the model, the automatic window takes %.2f of the device time of the best by hand, of rows and lists.\n", automatic/best)
	return nil
}
