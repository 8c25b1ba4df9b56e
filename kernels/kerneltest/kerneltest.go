// Package kerneltest is the conformance suite of kernels.Backend: [Run] puts one backend and the
// float64 kernels.Reference through the same operations on the same inputs, and compares.
//
// Every tensor lies at an odd place inside a larger buffer, among guard cells that are NaN or an
// impossible index. So an operation that writes past its window is caught by the guards, and one
// that reads past it by a NaN in its result. Start reading at [Run], then rig.go.
package kerneltest

import (
	"slices"
	"testing"

	"github.com/gnnstore/gnnstore/kernels"
)

// Run tests the backends that newBackend makes; every subtest takes one. Results are compared with
// float64 results within what float32 rounding explains; copies, conversions, dropout masks and
// indices exactly.
func Run(t *testing.T, newBackend func() kernels.Backend) { run(t, newBackend, offsets, nil) }

// RunBF16 tests products of backends that round their factors to bfloat16. The factors of the
// products that theirs are compared with are rounded too.
func RunBF16(t *testing.T, newBackend func() kernels.Backend) {
	run(t, newBackend, offsets, roundedToBF16)
}

// RunAligned is Run with operands at multiples of 16 elements of their buffers, for backends that
// move several at a time where they can.
func RunAligned(t *testing.T, newBackend func() kernels.Backend) {
	run(t, newBackend, []int{16, 32}, nil)
}

// products are the tests of products of matrices.
var products = []string{"MatMul", "MatMulNonFinite", "Affine", "AffineGrad"}

func run(t *testing.T, newBackend func() kernels.Backend, offsets []int, round func([]float32) []float32) {
	for _, c := range []struct {
		name string
		test func(*rig)
	}{
		{"Memory", testMemory},
		{"Host", testHost},
		{"Fetch", testFetch},
		{"Convert", testConvert},
		{"Fill", testFill},
		{"Add", testAdd},
		{"Scale", testScale},
		{"ScaleRows", testScaleRows},
		{"CheckFinite", testCheckFinite},
		{"ClipFactor", testClipFactor},
		{"RowNorms", testRowNorms},
		{"GatherRows", testGatherRows},
		{"GatherRowsGrad", testGatherRowsGrad},
		{"ScatterRows", testScatterRows},
		{"AddEdges", testAddEdges},
		{"RowRefusals", testRowRefusals},
		{"AssembleRows", testAssembleRows},
		{"RowsOf", testRowsOf},
		{"KeepRows", testKeepRows},
		{"StoreRows", testStoreRows},
		{"SlotRefusals", testSlotRefusals},
		{"AddRow", testAddRow},
		{"ColumnSumGrad", testColumnSumGrad},
		{"MatMul", testMatMul},
		{"MatMulNonFinite", testMatMulNonFinite},
		{"Affine", testAffine},
		{"AffineGrad", testAffineGrad},
		{"NeighborMean", testNeighborMean},
		{"NeighborMeanHalf", testNeighborMeanHalf},
		{"NeighborMeanGrad", testNeighborMeanGrad},
		{"NeighborMeanOfNone", testNeighborMeanOfNone},
		{"WeightedSum", testWeightedSum},
		{"WeightedSumHalf", testWeightedSumHalf},
		{"WeightedSumGrad", testWeightedSumGrad},
		{"WeightedSumWeightGrad", testWeightedSumWeightGrad},
		{"HeadDot", testHeadDot},
		{"HeadDotGrad", testHeadDotGrad},
		{"EdgeSoftmax", testEdgeSoftmax},
		{"EdgeSoftmaxGrad", testEdgeSoftmaxGrad},
		{"EdgeDropout", testEdgeDropout},
		{"EdgeDot", testEdgeDot},
		{"EdgeDotGrad", testEdgeDotGrad},
		{"EdgeDistance", testEdgeDistance},
		{"EdgeDistanceGrad", testEdgeDistanceGrad},
		{"EdgeSoftmaxOf", testEdgeSoftmaxOf},
		{"EdgeSoftmaxOfGrad", testEdgeSoftmaxOfGrad},
		{"ScoresOfNone", testScoresOfNone},
		{"ScoreRefusals", testScoreRefusals},
		{"EdgesOfNone", testEdgesOfNone},
		{"EdgeRefusals", testEdgeRefusals},
		{"ELU", testELU},
		{"ReLU", testReLU},
		{"ReLUGrad", testReLUGrad},
		{"ReLUMask", testReLUMask},
		{"GELU", testGELU},
		{"Gate", testGate},
		{"LeakyReLU", testLeakyReLU},
		{"Tanh", testTanh},
		{"GRUCell", testGRUCell},
		{"TimeEncode", testTimeEncode},
		{"TimeEncodeGrad", testTimeEncodeGrad},
		{"StateRefusals", testStateRefusals},
		{"Dropout", testDropout},
		{"DropoutGrad", testDropoutGrad},
		{"LayerNorm", testLayerNorm},
		{"LayerNormGrad", testLayerNormGrad},
		{"SoftmaxCrossEntropy", testSoftmaxCrossEntropy},
		{"SoftmaxCrossEntropyExtremes", testSoftmaxCrossEntropyExtremes},
		{"SigmoidCrossEntropy", testSigmoidCrossEntropy},
		{"SigmoidCrossEntropyExtremes", testSigmoidCrossEntropyExtremes},
		{"SquaredError", testSquaredError},
		{"ArgMax", testArgMax},
		{"Adam", testAdam},
		{"Guard", testGuard},
		{"UpdateRecords", testUpdateRecords},
		{"Columns", testColumns},
		{"ColumnsGrad", testColumnsGrad},
		{"RecordRefusals", testRecordRefusals},
		{"Refusals", testRefusals},
		{"Repeat", testRepeat},
		{"Beside", testBeside},
		{"GatherHost", testGatherHost},
	} {
		if round != nil && !slices.Contains(products, c.name) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, newBackend(), offsets)
			r.round = round
			c.test(r)
		})
	}
}

// shapes are rows × columns: none, one, odd, around the widths of vectors, and large enough to be
// split.
var shapes = [][2]int{{0, 0}, {0, 5}, {5, 0}, {1, 1}, {1, 7}, {3, 4}, {2, 15}, {2, 16}, {2, 17}, {5, 33}, {64, 65}, {523, 67}}
