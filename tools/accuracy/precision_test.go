package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// compared returns the comparison of a task whose trainings reached these accuracies.
func (p *precision) compared(of task, low, full []float64) comparison {
	c := comparison{task: of, pair: p.study().pairs(of)[0]}
	for i := range low {
		c.of, c.than = append(c.of, trial{Test: low[i]}), append(c.than, trial{Test: full[i]})
	}
	return c
}

func TestDtypes(t *testing.T) {
	facebook := task{name: "facebook", model: "sage", settings: labelled, epochs: "8"}
	text := dtypes.markdown("at commit abc1234", []comparison{
		dtypes.compared(facebook, []float64{0.90, 0.91, 0.92}, []float64{0.90, 0.92, 0.91}),
	}, 3)
	require.Contains(t, text, "## Features as float16 and as float32, 2")
	require.Contains(t, text, "labelled: gnnstore train DATASET")
	require.Contains(t, text, "what it reached with float16 less what it\nreached with float32;")
	require.Contains(t, text, "| float16, test % | float32, test % |")
	require.Contains(t, text, "| facebook | sage | labelled | 8 | 3 | 91.00 ± 1.00 | 91.00 ± 1.00 | 0.00 | -2.48 to 2.48 | 1 of 3 |")
}

func TestMatmuls(t *testing.T) {
	require.Equal(t, []string{"coauthor_cs", "coauthor_cs/gcn", "coauthor_cs/gat", "amazon_computers", "amazon_computers/gcn", "amazon_computers/gat",
		"ogbn_arxiv", "ogbn_arxiv/gcn", "ogbn_arxiv/gat", "acm/rgcn", "wn18rr", "wikipedia/tgn"}, names(matmuls.tasks))
	gat, triples, stream := matmuls.tasks[2], matmuls.tasks[10], matmuls.tasks[11]
	lost := matmuls.compared(gat, []float64{0.90, 0.91, 0.92}, []float64{0.906, 0.914, 0.925})
	one := matmuls.compared(triples, []float64{0.43}, []float64{0.4325})
	three := matmuls.compared(stream, []float64{0.96, 0.97, 0.95}, []float64{0.97, 0.98, 0.96})

	text := matmuls.markdown("at commit abc1234", []comparison{lost, one, three}, 10)
	require.Contains(t, text, "## Products in bf16 and in f32, 2")
	require.Contains(t, text, "with `--matmul bf16` and with `--matmul f32`")
	require.Contains(t, text, "--patience 15 --seed 1..10\n")
	require.Contains(t, text, "--eval-every 2 --seed 1..1\n")
	require.Contains(t, text, "stream: gnnstore train DATASET --model MODEL --epochs N --seed 1..3\n")
	require.Contains(t, text, "| bf16, test % | f32, test % |")
	require.Contains(t, text, "| coauthor_cs | gat | sampled | 100 | 3 | 91.00 ± 1.00 | 91.50 ± 0.95 | -0.50 | -0.75 to -0.25 | 0 of 3 |")
	require.Contains(t, text, "| wn18rr | none | triples | 8 | 1 | 43.00 ± 0.00 | 43.25 ± 0.00 | -0.25 |  | 0 of 1 |")
	require.Contains(t, text, "| wikipedia | tgn | stream | 5 | 3 | 96.00 ± 1.00 | 97.00 ± 1.00 | -1.00 | -1.00 to -1.00 | 0 of 3 |")

	require.EqualError(t, judge([]comparison{lost, one, three}), "coauthor_cs/gat, bf16: the loss against f32 may be 0.25 to 0.75 points, want within ±0.30")
	require.NoError(t, judge([]comparison{dtypes.compared(gat, []float64{0.90, 0.91}, []float64{0.95, 0.92})}), "of -dtypes nothing is judged")
}

// Both trainings of a seed are the task's but for the flags of their precision.
func TestPrecisionTrials(t *testing.T) {
	of := matmuls.tasks[1]
	both := matmuls.study().pairs(of)[0]
	require.Equal(t, "--model gcn --epochs 100 --layers 2", trialOf(of, both.of, 7).Args[:35])
	require.Contains(t, trialOf(of, both.of, 7).Args, " --patience 15 --matmul bf16 --seed 7")
	require.Contains(t, trialOf(of, both.than, 7).Args, " --patience 15 --matmul f32 --seed 7")

	both = dtypes.study().pairs(of)[0]
	f16, f32 := trialOf(of, both.of, 7), trialOf(of, both.than, 7)
	require.Equal(t, f16.Args, f32.Args)
	require.Equal(t, "--dtype f16", f16.Ingest)
	require.Equal(t, "--dtype f32", f32.Ingest)
	require.False(t, f16.same(f32), "they have data sets of their own")

}

// A task of one seed has one, however many are asked for.
func TestPrecisionSeeds(t *testing.T) {
	log, err := openTrials("", "b1")
	require.NoError(t, err)
	triples := matmuls.tasks[10]
	s := matmuls.study()
	for _, v := range []variant{matmuls.low, matmuls.full} {
		require.NoError(t, log.add(trialOf(triples, v, 1)))
	}
	compared, err := s.compare(t.Context(), new(bench), []task{triples}, 10, 1, log)
	require.NoError(t, err)
	require.Len(t, compared[0].of, 1)
	require.Len(t, compared[0].than, 1)
}

func TestWithEpochs(t *testing.T) {
	cut := withEpochs(matmuls.tasks[:2], 30)
	require.Equal(t, "30", cut[0].epochs)
	require.Equal(t, "30", cut[1].epochs)
	require.Equal(t, "100", matmuls.tasks[0].epochs)
}
