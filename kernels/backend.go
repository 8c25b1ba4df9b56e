package kernels

// DType is the element type of a [Tensor].
type DType uint8

const (
	F32 DType = iota // 32-bit float, the type of all computing
	F16              // IEEE 754 half, the type of stored rows: an input, and what ScatterRows and StoreRows write
	U32              // node ids, local ids, offsets, class labels
)

// Buffer is memory that belongs to the Backend that made it; nothing else may look inside.
type Buffer interface {
	// Len is the number of elements.
	Len() int
}

// Tensor is a dense row-major window of Rows × Cols elements that starts Off elements into Buf. It
// is a plain value: copying it copies no data, and it is valid until the Buffer is freed.
type Tensor struct {
	Buf        Buffer
	Type       DType
	Off        int
	Rows, Cols int
}

// Len is the number of elements in the window.
func (t Tensor) Len() int { return t.Rows * t.Cols }

// Slice is the window of rows [lo, hi).
func (t Tensor) Slice(lo, hi int) Tensor {
	if lo < 0 || hi < lo || hi > t.Rows {
		panic("kernels: Slice out of range")
	}
	t.Off += lo * t.Cols
	t.Rows = hi - lo
	return t
}

// Adjacency is one sampled layer in CSR2 form: destination i has the neighbours
// Nbr[Start[i]:End[i]], which are row numbers of the source tensor. RevStart and RevDst hold the
// same edges by source, for the backward pass: source u is a neighbour of
// RevDst[RevStart[u]:RevStart[u+1]], ascending, repeated as often as the edge is. They may be zero
// Tensors where no gradient flows to the sources. RevEdge[j] is the position in Nbr of the edge
// RevDst[j]; only operations whose edges have values read it. All are U32 with one column.
type Adjacency struct {
	Start, End, Nbr           Tensor
	RevStart, RevDst, RevEdge Tensor
}

// Term is one product of Affine: rows X (N×I) and weights W (O×I), as PyTorch's Linear keeps them.
type Term struct{ X, W Tensor }

// TermGrad is where the gradients of a term go: to DW, of W's shape, dyᵀ·X is added, and to DX, of
// X's shape, dy·W. The zero Tensor leaves one out. Without Add, DX is set, not added to. Across
// says that W is In×Out, and the term X·W.
type TermGrad struct {
	Term
	DW, DX      Tensor
	Add, Across bool
}

// AdamStep holds the numbers of one Adam update (Kingma and Ba 2015, algorithm 1). Correct1 and
// Correct2 are the bias corrections 1-β₁ᵗ and 1-β₂ᵗ; WeightDecay is added to the gradient (L2), as
// in the original.
type AdamStep struct {
	LR, Beta1, Beta2, Eps, WeightDecay float32
	Correct1, Correct2                 float32
}

// AdamParam is a parameter with its gradient and its first and second moment, all of one shape.
type AdamParam struct{ Value, Grad, M, V Tensor }

// Backend is the one deliberately wide interface of the project: every operation that a model
// needs, on buffer handles, so that model code is written once. Implementations are the CPU
// (assembly, and portable Go), the float64 [Reference], and package cuda; package kerneltest holds
// them together.
//
// Conventions, for every operation:
//   - Tensors are F32 unless the comment says otherwise. A shape that does not fit is the caller's bug and panics.
//   - dst never overlaps an input, except where the comment says "in place".
//   - A function whose name ends in Grad adds to its results (+=), as does MatMul with accumulate; all others overwrite.
//   - An id, label or position out of range panics. The CPU panics before it writes anything. A
//     backend that is Behind may panic in a later download, or in the wait of a later Mark, and
//     what the operation has computed is undefined.
//   - Zero rows or columns are fine: an empty sum is 0, and what has no definition (the largest of no columns) is left as
//     it was.
//   - Results are the same bits for any number of threads: work is split by what is written, or into fixed chunks.
//   - NaN and Inf in an input reach every output that depends on it.
//
// Concurrency: operations, and downloads, are one goroutine's at a time. Beside it any goroutines
// may call Alloc, Free, Host and the uploads, and read and write what Host lent, as long as no call
// uses the same elements of a buffer: none that runs, and none since Host or Mark was called. So a
// pipeline brings rows in while a step computes. A buffer goes from one goroutine to the next as
// other memory does, by a channel or a lock. Where operations go on after their call has returned,
// all that touches a buffer waits for those that use it.
type Backend interface {
	// Name returns the name of the implementation, for records: "portable", "reference".
	Name() string
	// Bytes returns the memory that this process has of the backend's kind, on the host and on the
	// device: how much a step takes is the difference between after and before.
	Bytes() Use

	// Alloc returns a zeroed buffer of n elements; Free gives it back, and nothing else does: not
	// the garbage collector. Len 0 is allowed. Where the system refuses the memory, Alloc panics
	// with a *MemoryError: see [RecoverMemory]. Windows into a freed buffer panic when they are
	// used; bytes that Host lent must not be.
	Alloc(t DType, n int) Buffer
	Free(b Buffer)

	// UploadF32, UploadU32 copy host memory to a tensor of equal length, Download copies it back.
	// UploadHalf takes float16 bits. The caller keeps the host memory, and may change it once the
	// call returns.
	UploadF32(dst Tensor, src []float32)
	UploadU32(dst Tensor, src []uint32)
	UploadHalf(dst Tensor, src []uint16)
	DownloadF32(dst []float32, src Tensor)
	DownloadU32(dst []uint32, src Tensor)
	// FetchF32, FetchU32 begin a download and do not wait for it. dst receives src as the
	// operations before the call leave it, once the function that a later Mark returns has
	// returned. Until then dst belongs to the backend.
	FetchF32(dst []float32, src Tensor)
	FetchU32(dst []uint32, src Tensor)
	// Mark marks the point after all operations and fetches so far. wait returns once they have
	// run.
	Mark() (wait func())
	// Behind reports whether operations go on after their call has returned, so that the host can
	// use the time until it needs what they fetch.
	Behind() bool
	// TakesHalf reports whether the X of a Term may be F16, without a Convert.
	TakesHalf() bool
	// Host lends the memory of t where the host can address it (little-endian bytes), so that a
	// gather can write straight into it; ok is false where it cannot, and then the caller uploads:
	// [Staging] does one or the other. The bytes die with the buffer.
	Host(t Tensor) (b []byte, ok bool)

	// Fill sets every element to v.
	Fill(dst Tensor, v float32)
	// Convert copies src (F16 or F32) to dst (F32).
	Convert(dst, src Tensor)
	// Add computes dst += src.
	Add(dst, src Tensor)
	// Scale multiplies dst by factor, in place. ScaleRows multiplies row r by factors[r]; factors
	// is Rows×1.
	Scale(dst Tensor, factor float32)
	ScaleRows(dst, factors Tensor)
	// CheckFinite sets the flag void (U32, 1×1) to 1 if an element of src is NaN or infinite, and
	// else leaves it.
	CheckFinite(void, src Tensor)
	// ClipFactor computes the factor that scales gradients to a global norm of at most most, as
	// PyTorch's clip_grad_norm_ does: most/(norm + 1e-6), at most 1, in float64 and rounded once.
	// squares (a row a gradient) receives the sum of squares of each, which is added up in float64
	// and rounded once. The norm is the root of their sum.
	ClipFactor(factor, squares Tensor, grads []Tensor, most float64)

	// RowNorms writes to dst (Rows×1) the Euclidean norm of each row of src. It is added up in
	// float64 and rounded once.
	RowNorms(dst, src Tensor)

	// A table has R rows and a list N, with equal columns. ids (U32, N×1) has, for each row of the
	// list, the number of its row in the table. GatherRows copies rows
	// of the table src (F16 or F32) to the list dst, each as often as it is named. GatherRowsGrad
	// adds the list ddst to the rows of dsrc. Sums into one row go in the order of ids.
	GatherRows(dst, src, ids Tensor)
	GatherRowsGrad(dsrc, ddst, ids Tensor)
	// ScatterRows copies the list src to rows of the table dst (F16 or F32), and leaves the others
	// as they are. F16 is rounded to nearest even. ids are distinct: the result for a row that is
	// named twice is undefined.
	ScatterRows(dst, src, ids Tensor)
	// AssembleRows puts together rows that were computed and rows that were kept. Row i of dst is
	// row at[i] of x or, where at[i] has InSlot, the first columns of row at[i]-InSlot of slots
	// (F16), as many as dst has. slots has at least as many columns as dst, or no rows. at is U32,
	// one element a row of dst. The gradient of x is GatherRows of dst's gradient, by the inverse
	// of at.
	AssembleRows(dst, x, slots, at Tensor)
	// RowsOf puts together rows that lie on the device (hot) and rows that came. It copies bits and
	// converts nothing. Row i of dst (F16 or F32) is row at[i] of hot or, where at[i] has InSlot,
	// row at[i]-InSlot of came. at is U32, one element a row of dst. hot and came have dst's type
	// and columns, or no rows. Since a device region is F16, hot may also be F16 where dst is F32,
	// with twice as many columns: two halves are then one float, its low half first.
	RowsOf(dst, hot, came, at Tensor)
	// KeepRows copies the bits of row from[i] of came to row to[i] of hot, for a later RowsOf. hot
	// has came's type and columns, or is F16 with twice the columns of an F32 came. The rows that
	// to names are distinct. from and to are columns (U32) of equal length.
	KeepRows(hot, came, from, to Tensor)
	// StoreRows rounds row rows[i] of x to the beginning of row to[i] of slots (F16), and leaves
	// the others as they are. It rounds as ScatterRows does, but clamps to ±65504 instead of
	// infinity. lost[i] is 1 where a value of the row was clamped or is NaN, else 0. The rows that
	// to names are distinct. rows, to and lost are columns (U32) of equal length. Where void, a
	// flag or the zero Tensor, is set, slots and lost are left as they are.
	StoreRows(slots, lost, x, rows, to, void Tensor)
	// AddEdges adds row from[e] of src (F16 or F32), times w[e], to row to[e] of dst, edge after
	// edge. to and from (U32) and w are columns of equal length; with the zero Tensor for w, every
	// edge counts once. Sums are in float32, in the order of the edges, so the bits equal the bits
	// of WeightedSum over the same terms.
	AddEdges(dst, src, w, to, from Tensor)

	// MatMul computes dst = op(a)·op(b), or dst += … with accumulate, where op transposes if asked.
	MatMul(dst, a, b Tensor, transA, transB, accumulate bool)
	// Affine computes dst = Σ x·wᵀ + bias over the terms, and with relu the larger of that and 0,
	// NaN staying NaN: MatMul, AddRow and ReLU in one. bias is 1×Cols, or the zero Tensor for none.
	Affine(dst, bias Tensor, relu bool, terms ...Term)
	// AffineGrad takes dy, the gradient of y = Affine(bias, terms), back to the bias and the terms.
	// If y is not the zero Tensor, it is the result with relu, and dy counts as 0 where y is not
	// above 0. dbias (1×Cols) receives the sum of dy's rows, unless it is the zero Tensor. It is
	// ReLUMask, ColumnSumGrad and two MatMul a term in one, and leaves dy undefined where there is
	// a y. DX may be the first rows of one and the same tensor for several terms; they are taken in
	// order.
	AffineGrad(dy, y, dbias Tensor, terms ...TermGrad)
	// AddRow adds the 1×Cols row to every row of dst.
	AddRow(dst, row Tensor)
	// ColumnSumGrad adds the sum of src's rows to the 1×Cols row drow.
	ColumnSumGrad(drow, src Tensor)

	// NeighborMean computes dst[i] = mean of src[u] over the neighbours u of i, and 0 where there
	// is none. src is F16 or F32; sums are in float32, in the order of Nbr.
	NeighborMean(dst, src Tensor, g Adjacency)
	// NeighborMeanGrad adds to dsrc[u] the sum over its RevDst i of ddst[i] / degree(i), in the
	// order of RevDst. Rows from fresh on are overwritten, not added to.
	NeighborMeanGrad(dsrc, ddst Tensor, g Adjacency, fresh int)

	// Edge values: a tensor of edges has a row for every position of Nbr and a column for every
	// head; rows of positions that are in no list are neither read nor written. Heads split the
	// columns of a row into equal parts.

	// WeightedSum computes head h of dst[i] = Σ w[e,h] · head h of src[Nbr[e]] over the edges e of
	// i, in the order of Nbr, and 0 where there is none. src is F16 or F32. WeightedSumGrad adds to
	// dsrc, in the order of RevDst, WeightedSumWeightGrad to dw the products of head h of ddst[i]
	// and src[Nbr[e]], src being F32.
	WeightedSum(dst, src, w Tensor, g Adjacency)
	WeightedSumGrad(dsrc, ddst, w Tensor, g Adjacency)
	WeightedSumWeightGrad(dw, ddst, src Tensor, g Adjacency)
	// HeadDot computes dst[n,h] = head h of src[n] · a[h]: src has Rows × heads·C elements, a heads
	// × C, dst Rows × heads.
	HeadDot(dst, src, a Tensor)
	HeadDotGrad(dsrc, da, ddst, src, a Tensor)
	// EdgeSoftmax computes for every destination i and head h the softmax, over its edges e, of
	// LeakyReLU(srcScore[Nbr[e],h] + dstScore[i,h]) with the given slope below 0. dst is a tensor
	// of edges. w has a weight above 0 for every position of Nbr (one column), and exponentials are
	// multiplied by it, so that an edge counts as that many of its score; or w has no rows, and
	// every edge counts once.
	EdgeSoftmax(dst, srcScore, dstScore, w Tensor, g Adjacency, slope float32)
	// EdgeSoftmaxGrad takes the gradient dalpha of its result alpha back to both scores, whatever
	// the weights were. dedge, a tensor of edges like them, is overwritten with what each edge's
	// sum of scores receives.
	EdgeSoftmaxGrad(dsrcScore, ddstScore, dedge, dalpha, alpha, srcScore, dstScore Tensor, g Adjacency, slope float32)
	// EdgeDot computes, for every destination i and head h, dst[e,h] = scale · ⟨head h of q[i],
	// head h of k[Nbr[e]]⟩ for its edges e. dst is a tensor of edges, q has a row a destination and
	// k one a source. EdgeDotGrad adds to dq in the order of Nbr, and to dk in the order of RevDst.
	EdgeDot(dst, q, k Tensor, g Adjacency, scale float32)
	EdgeDotGrad(dq, dk, ddst, q, k Tensor, g Adjacency, scale float32)
	// EdgeDistance computes dst[e] = scale · distance(q[i], k[Nbr[e]]) for the edges e of every
	// destination i. dst is a tensor of edges of one column. The distance is the sum over columns
	// of |q-k|. With complex it is the sum of √(re² + im²) over the complex numbers of q-k; the
	// first half of the columns has the real parts, the second half the imaginary parts.
	// EdgeDistanceGrad adds to dq in the order of Nbr, and to dk in the order of RevDst. Two equal
	// numbers have a gradient of 0. Squares are float32, so they overflow if a difference exceeds
	// 1e19.
	EdgeDistance(dst, q, k Tensor, g Adjacency, complex bool, scale float32)
	EdgeDistanceGrad(dq, dk, ddst, q, k Tensor, g Adjacency, complex bool, scale float32)
	// EdgeSoftmaxOf computes for every destination and head the softmax of scores over its edges in
	// all relations together. Relation r has the lists g[r], and its scores[r] and alpha[r] are
	// tensors of edges; all have the same destinations and heads. w[r] is as EdgeSoftmax's w. Sums
	// go by relation, then in the order of Nbr. EdgeSoftmaxOfGrad takes the gradient dalpha of the
	// result alpha back to dscores, whatever the weights were. Neither reads the neighbours
	// themselves.
	EdgeSoftmaxOf(alpha, scores, w []Tensor, g []Adjacency)
	EdgeSoftmaxOfGrad(dscores, dalpha, alpha []Tensor, g []Adjacency)
	// EdgeDropout keeps head h of the edges from Nbr[e] to i when EdgeDropoutKeep(key, dstIDs[i],
	// srcIDs[Nbr[e]], h, p), and scales as Dropout does. srcIDs is U32, one per source, and dstIDs
	// one per destination. dst may be src: in place.
	EdgeDropout(dst, src, srcIDs, dstIDs Tensor, g Adjacency, key uint64, p float32)
	EdgeDropoutGrad(dx, dy, srcIDs, dstIDs Tensor, g Adjacency, key uint64, p float32)

	// ReLU computes dst = max(0, src); NaN stays NaN. ReLUGrad adds dy where y > 0. ReLUMask sets d
	// to 0 where y is not above 0, in place: what ReLUGrad makes of zeros and of d. ReLU's dst may
	// be src: in place.
	ReLU(dst, src Tensor)
	ReLUGrad(dx, dy, y Tensor)
	ReLUMask(d, y Tensor)

	// ELU computes dst = src above 0 and exp(src)-1 elsewhere. ELUGrad adds dy times 1 where y > 0,
	// times y+1 elsewhere.
	ELU(dst, src Tensor)
	ELUGrad(dx, dy, y Tensor)

	// GELU computes dst = src·Φ(src), Φ being the standard normal distribution function; at -Inf it
	// is 0. GELUGrad adds dy times its slope at x, the input of the forward pass.
	GELU(dst, src Tensor)
	GELUGrad(dx, dy, x Tensor)

	// LeakyReLU computes dst = src above 0 and slope·src elsewhere. LeakyReLUGrad adds dy where x >
	// 0, times slope elsewhere, x being the input of the forward pass.
	LeakyReLU(dst, src Tensor, slope float32)
	LeakyReLUGrad(dx, dy, x Tensor, slope float32)

	// Tanh computes dst = tanh(src), the activation of an RNN cell. Its dst may be src: in place.
	// TanhGrad adds dy·(1-y²).
	Tanh(dst, src Tensor)
	TanhGrad(dx, dy, y Tensor)

	// GRUCell computes the new state of a GRU cell (Cho et al. 2014, as PyTorch has it) from its
	// two products, x = input·W_iᵀ + b_i and h = s·W_hᵀ + b_h, which have the columns of gates r, z
	// and n side by side, three times as many as the state s:
	//
	//	r = σ(x_r + h_r), z = σ(x_z + h_z), n = tanh(x_n + r·h_n), dst = n + z·(s - n)
	//
	// gates, of x's shape, receives r, z and n, which GRUCellGrad takes back together with h and s.
	// gates may be x: in place.
	GRUCell(dst, gates, x, h, s Tensor)
	GRUCellGrad(dx, dh, ds, dy, gates, h, s Tensor)

	// TimeEncode computes dst[i,c] = cos(t·w[c] + b[c]), where t is the sum of the two columns of
	// row i of times: see SplitTime. w and b are 1×Cols. The phase is in float64, rounded once, and
	// the result within 3e-7 of its cosine for phases below 2⁵⁰; beyond, it is something from -1 to
	// 1. TimeEncodeGrad adds to dw and db; there is no gradient of times.
	TimeEncode(dst, times, w, b Tensor)
	TimeEncodeGrad(dw, db, dy, times, w, b Tensor)

	// Gate computes dst = σ(s)·a + (1-σ(s))·x, s being 1×1. GateGrad adds to all three; ds is added
	// up in float64.
	Gate(dst, a, x, s Tensor)
	GateGrad(da, dx, ds, dy, a, x, s Tensor)

	// Dropout keeps element (r, c) of src (F16 or F32) when DropoutKeep(key, ids[r], c, p) and
	// scales it by 1/(1-p'), with p' the effective rate of p (see DropoutKeep); all else is 0. ids
	// is U32, one per row. 0 ≤ p < 1. dst may be an F32 src: in place.
	Dropout(dst, src, ids Tensor, key uint64, p float32)
	DropoutGrad(dx, dy, ids Tensor, key uint64, p float32)

	// LayerNorm normalises each row to mean 0 and variance 1 (biased variance, eps added to it),
	// then multiplies by gain and adds bias (both 1×Cols). stats (Rows×2) receives each row's mean
	// and 1/sqrt(var+eps), which LayerNormGrad takes back together with x, the input of the forward
	// pass. If fresh, dx is overwritten, not added to.
	LayerNorm(dst, stats, x, gain, bias Tensor, eps float32)
	LayerNormGrad(dx, dgain, dbias, dy, x, stats, gain Tensor, fresh bool)

	// SoftmaxCrossEntropy writes each row's loss -log softmax(logits)[label] to loss (Rows×1), and
	// to dlogits its gradient times scale. labels is U32; a row labelled NoLabel has loss 0 and
	// gradient 0.
	SoftmaxCrossEntropy(loss, dlogits, logits, labels Tensor, scale float32)
	// SigmoidCrossEntropy writes to loss (Rows×1) the sum over each row of -y·log σ(x) -
	// (1-y)·log(1-σ(x)), with x in logits and y in targets (Rows×Cols, 0 to 1), and to dlogits the
	// gradient times scale. A target of NaN is not known: its element has loss 0 and gradient 0.
	SigmoidCrossEntropy(loss, dlogits, logits, targets Tensor, scale float32)
	// SquaredError writes to loss (Rows×1) the sum over each row of (x-y)², with x in predictions
	// and y in targets (Rows×Cols), and to dpredictions the gradient times scale. A target of NaN
	// is not known: its element has loss 0 and gradient 0.
	SquaredError(loss, dpredictions, predictions, targets Tensor, scale float32)
	// ArgMax writes to dst (U32, Rows×1) the column of each row's largest value: the first of
	// equals, and a NaN counts as largest, so that it is seen.
	ArgMax(dst, src Tensor)

	// Adam updates parameters and their moments in place from their gradients, and sets the
	// gradients to 0, even where the flag of g is set. It first multiplies each value by keep:
	// 1-rate·decay in AdamW (Loshchilov and Hutter 2019, algorithm 2), else 1.
	Adam(params []AdamParam, keep float32, s AdamStep, g Guard)

	// UpdateRecords updates records in place, rows of s.Rule.Columns(grad.Cols) columns, from the
	// gradients of their values, a row each. With a g.Scale it leaves grad undefined.
	// Columns copies columns [from, from+dst.Cols) of src to dst. ColumnsGrad adds ddst to the same
	// columns of dsrc.
	UpdateRecords(rec, grad Tensor, s RowStep, g Guard)
	Columns(dst, src Tensor, from int)
	ColumnsGrad(dsrc, ddst Tensor, from int)
}

// NoLabel marks a row without a label.
const NoLabel = ^uint32(0)
