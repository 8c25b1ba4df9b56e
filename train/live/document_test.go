package live

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/page"
	"github.com/gnnstore/gnnstore/train/pipeline"
	"github.com/gnnstore/gnnstore/train/run"
)

// trainedRun returns a run of so many epochs.
func trainedRun(name string, epochs int) *run.Result {
	valid := 0.5
	r := &run.Result{Run: "runs/" + name, Dataset: "a.gnn", Status: run.Done, Options: run.DefaultOptions(), Advice: "the step limits"}
	r.Stages = pipeline.Stats{Step: 3, Wait: 1, Sample: 2}
	r.Tiers.Host.RowsHit, r.InputRows = 60, 100
	for e := range epochs {
		r.Epochs = append(r.Epochs, run.Epoch{
			Epoch: e + 1, Loss: 1 / float64(e+1), TrainAcc: 0.5, ValidAcc: &valid, Seconds: 2, Steps: 3, InputRows: 100,
			HostRows: 60, DiskBytes: 4096,
			HitRate: 0.6, LimitingStage: "step",
		})
	}
	r.Best = run.Best{Epoch: epochs / 2, ValidAcc: &valid, TestAcc: &valid}
	return r
}

// pageOf returns the page of runs.
func pageOf(t *testing.T, runs ...*run.Result) string {
	t.Helper()
	text, err := Document(runs).Page()
	require.NoError(t, err)
	require.LessOrEqual(t, len(text), page.MaxBytes)
	return string(text)
}

// has fails if a page lacks a text. It does not print the page.
func has(t *testing.T, page, want string) {
	t.Helper()
	require.True(t, strings.Contains(page, want), want)
}

// TestDocument: a page shows a run in whatever state it is.
func TestDocument(t *testing.T) {
	text := pageOf(t, trainedRun("a", 20))
	for _, want := range []string{
		">done</span>", "<h1>runs/a ", "The step limits.", "Loss over epoch. training: from 1 to 0.05, lowest 0.05 at 20",
		"host: from 60.00 % to 60.00 %", "disk: from 40.00 % to 40.00 %", "validation: from 50.00 % to 50.00 %", "<td class=\"n strong\">", "4 KiB",
		"step</th>", "computes; it limits the others",
	} {
		has(t, text, want)
	}

	begun := &run.Result{Run: "b", Status: run.Running, Options: run.DefaultOptions(), Live: &run.Live{}}
	begun.Advice = Advise(begun)
	text = pageOf(t, begun)
	has(t, text, "epoch 1 of auto, no step is done yet")
	has(t, text, "No epoch has ended yet.")
	has(t, text, "Caches are being filled")

	died := trainedRun("c", 3)
	died.Status, died.Best = run.Died, run.Best{}
	for i := range died.Epochs {
		died.Epochs[i].ValidAcc, died.Epochs[i].TrainAcc = nil, math.NaN()
	}
	text = pageOf(t, died)
	has(t, text, `<span class="chip bad">died</span>`)
	has(t, text, "Nothing was measured.")

	stream := trainedRun("d", 3)
	stream.Options = run.DefaultStreamOptions("tgn")
	stream.Stream, stream.Stages.State, stream.Stages.Write = &run.StreamOf{Staleness: run.StalenessOf{K: 7}}, 1, 1
	stream.Metric = metric.AP
	text = pageOf(t, stream)
	has(t, text, ">7 steps</b>")
	has(t, text, "part of gather: copies rows that steps rewrite")

	several := trainedRun("e", 3)
	several.Workers = &run.WorkersOf{InputRows: []int64{5, 6}, DiskBytes: []int64{1}, WaitSeconds: []float64{1, 2}}
	has(t, pageOf(t, several), "<h3 id=\"limits-table-b-title\">Workers</h3>")
	old := trainedRun("f", 3)
	for i := range old.Epochs {
		old.Epochs[i].HostRows = 0
	}
	require.False(t, strings.Contains(pageOf(t, old), "Rows served by each tier"), "an earlier version did not record them")
	has(t, pageOf(t, &run.Result{}), "<h1>")
}

// TestCompare: runs stand side by side, with what differs among their options.
func TestCompare(t *testing.T) {
	a, b, c := trainedRun("x/a", 5), trainedRun("y/a", 7), &run.Result{Run: "z", Status: "unreadable", Error: "damaged"}
	b.Options.Hidden, b.Status = 99, run.Running
	better := 0.75
	b.Best.ValidAcc = &better
	text := pageOf(t, a, b, c)
	for _, want := range []string{
		"<h1>3 runs <span class=\"chip active\">1 running</span></h1>", "runs/x/a: from 1 to 0.2", "runs/y/a: from 1 to 0.1429", "unreadable: damaged",
		"hidden</th>", ">99</td>", `<td class="n strong">75.00 %</td>`, "runs/y/a: the step limits",
	} {
		has(t, text, want)
	}
	var many []*run.Result
	for i := range MostDrawn + 30 {
		r := trainedRun(fmt.Sprint("seed-", i), 200)
		r.Options.Seed = uint64(i)
		many = append(many, r)
	}
	text = pageOf(t, many...)
	has(t, text, "The charts draw the first 12 runs.")
	has(t, text, "seed-41")
}

// TestDocumentOfStranger: a result that somebody made up is shown, as text, in a page that is not
// larger than others.
func TestDocumentOfStranger(t *testing.T) {
	const hostile = "</script><script>alert(1)</script>"
	for _, text := range []string{
		`{}`, `{"epochs":[{"epoch":-9223372036854775808,"loss":1e308},{"epoch":9223372036854775807,"loss":-1e308,"input_rows":-5,"host_rows":7}]}`,
		`{"run":"` + hostile + `","metric":"` + hostile + `","status":"` + hostile + `","options":{"fanouts":null,"model":"` + hostile + `"}}`,
		`{"metric":"é","stage_seconds":{"step":1e308,"wait":1e308,"sample":-1e308},"workers":{"input_rows":[1,2,3]},"peak_rss_bytes":-1}`,
		`{"report":{"classes":[{"name":"` + strings.Repeat(hostile, 1e4) + `"}]},"epochs":[` + strings.Repeat(`{"epoch":1},`, 1e5) + `{"epoch":1}]}`,
	} {
		r := new(run.Result)
		require.NoError(t, json.Unmarshal([]byte(text), r))
		r.Advice = Advise(r)
		for _, page := range []string{pageOf(t, r), pageOf(t, r, r)} {
			require.False(t, strings.Contains(page, hostile))
			require.Equal(t, 1, strings.Count(page, "<script>"))
		}
	}
	pageOf(t, trainedRun("long", 100_000))
}
