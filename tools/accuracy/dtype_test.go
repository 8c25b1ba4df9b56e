package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDtypes(t *testing.T) {
	text := dtypesMarkdown("at commit abc1234", []rounding{{
		task: task{name: "facebook", model: "sage", settings: labelled, epochs: "8"},
		f16:  result{test: []float64{0.90, 0.91, 0.92}}, f32: result{test: []float64{0.90, 0.92, 0.91}},
	}}, 3)
	require.Contains(t, text, "labelled: gnnstore train DATASET")
	require.Contains(t, text, "| facebook | sage | labelled | 8 | 3 | 91.00 ± 1.00 | 91.00 ± 1.00 | 0.00 | -2.48 to 2.48 | 1 of 3 |")
}
