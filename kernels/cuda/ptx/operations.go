package ptx

import "fmt"

// operations has the name of the operation for each code in the high half of a kernel's error word.
// gpu.h has the codes; a test compares the two.
var operations = [...]string{
	1:  "GatherRows",
	2:  "GatherRowsGrad",
	3:  "ScatterRows",
	4:  "AssembleRows",
	5:  "StoreRows",
	6:  "AddEdges",
	7:  "NeighborMean",
	8:  "NeighborMeanGrad",
	9:  "WeightedSum",
	10: "WeightedSumGrad",
	11: "WeightedSumWeightGrad",
	12: "EdgeSoftmax",
	13: "EdgeSoftmaxGrad",
	14: "EdgeDot",
	15: "EdgeDotGrad",
	16: "EdgeSoftmaxOf",
	17: "EdgeSoftmaxOfGrad",
	18: "EdgeDropout",
	19: "EdgeDropoutGrad",
	20: "SoftmaxCrossEntropy",
	21: "RowsOf",
	22: "KeepRows",
	23: "EdgeDistance",
	24: "EdgeDistanceGrad",
}

// Failure reads the error word that kernels share: the operation that found an id, label or
// position out of range, and its place in the list. ok is false where the word is 0: none did.
func Failure(word uint64) (operation string, place uint32, ok bool) {
	if word == 0 {
		return "", 0, false
	}
	code := word >> 32
	if code == 0 || code >= uint64(len(operations)) {
		return fmt.Sprintf("operation %d", code), uint32(word), true
	}
	return operations[code], uint32(word), true
}
