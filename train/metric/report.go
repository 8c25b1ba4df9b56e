package metric

import "math"

// Report measures predictions in many ways, for people who have to rely on them. A value that is
// not defined, or would take too much memory, is nil. Its JSON keys are stable.
type Report struct {
	Count int64 `json:"count"` // rows with a label
	// Accuracy is nil with several classes a node.
	Accuracy *float64 `json:"accuracy"`
	// BalancedAccuracy is the mean recall of the classes that labels name.
	BalancedAccuracy *float64 `json:"balanced_accuracy"`
	MacroF1          *float64 `json:"macro_f1"`
	// ROCAUC and PRAUC (average precision) rank the probabilities of a class: the second of two
	// classes, else each class against all others, and their mean over classes that have both.
	ROCAUC *float64 `json:"roc_auc"`
	PRAUC  *float64 `json:"pr_auc"`
	// CalibrationError is the expected calibration error of Guo et al. 2017, equation 3, over
	// Calibration; nil with several classes a node.
	CalibrationError *float64 `json:"calibration_error"`

	// Classes is left out beyond MostReported classes.
	Classes     []ClassReport `json:"classes,omitempty"`
	Calibration []Bin         `json:"calibration,omitempty"`
	// Confusion[i][j] counts rows of class i that were predicted to be of class j. It is left out
	// beyond MostConfused classes, and with several classes a node.
	Confusion [][]int64 `json:"confusion,omitempty"`
}

// Bounds of the classes that a Report tells apart.
const (
	MostReported = 1000
	MostConfused = 200
)

// ClassReport is a Report's part on one class, by its index.
type ClassReport struct {
	Name      string   `json:"name,omitempty"`
	Count     int64    `json:"count"`     // rows with this label
	Predicted int64    `json:"predicted"` // rows that were predicted to have it
	Precision *float64 `json:"precision"`
	Recall    *float64 `json:"recall"`
	F1        *float64 `json:"f1"`
	ROCAUC    *float64 `json:"roc_auc"`
	PRAUC     *float64 `json:"pr_auc"`
}

// Bin has the rows whose largest probability is above From and at most To.
type Bin struct {
	From       float64  `json:"from"`
	To         float64  `json:"to"`
	Count      int64    `json:"count"`
	Confidence *float64 `json:"confidence"` // mean of the largest probabilities
	Accuracy   *float64 `json:"accuracy"`
}

// bins is the number of bins of Guo et al. 2017.
const bins = 15

// Memory of a Reporter.
const (
	// MostScores is the largest number of probabilities that a Reporter keeps to rank them. Beyond
	// it a Report has no areas under curves.
	MostScores = 8 << 20
	// scoreBytes is the memory of a probability: 4 in a list, and 5 in the copy of a list that
	// grows by a quarter.
	scoreBytes = 9
	// memoryShare is the part of a memory budget that probabilities may take.
	memoryShare = 16
)

// ReportBytes returns the bytes that a Reporter takes for so many rows, in a process that may take
// memory bytes.
func ReportBytes(rows int64, classes int, multi bool, memory int64) int64 {
	scores := min(rows*int64(rankedClasses(classes, multi)), mostScores(memory))
	confused := int64(min(classes, MostConfused))
	return scoreBytes*scores + 8*confused*confused + 100*int64(classes)
}

// Bytes returns the bytes that an accumulator of k keeps of so many rows: the scores that ROCAUC
// ranks.
func (k Kind) Bytes(rows int64, classes int, multi bool) int64 {
	if k != ROCAUC {
		return 0
	}
	return scoreBytes * rows * int64(rankedClasses(classes, multi))
}

// mostScores returns how many scores a Reporter keeps within memory.
func mostScores(memory int64) int64 { return min(MostScores, memory/memoryShare/scoreBytes) }

// rankedClasses returns how many classes have scores. Of two classes only the second one has.
func rankedClasses(classes int, multi bool) int {
	if classes == 2 && !multi {
		return 1
	}
	return classes
}

// Reporter makes a Report. One goroutine uses it. ReportBytes returns its memory.
type Reporter struct {
	classes   []outcomes
	confusion [][]int64
	ranked    []scores[float32] // by class, or of the second of two; nil beyond most
	kept      int64
	most      int64
	rows      int64
	bins      [bins]struct {
		rows, right int64
		confidence  float64
	}
	multi bool
	p     []float64 // probabilities of a row
}

// NewReporter makes a Reporter for so many classes: one a row, or with multi any number. The
// process may take memory bytes.
func NewReporter(classes int, multi bool, memory int64) *Reporter {
	r := &Reporter{multi: multi, classes: make([]outcomes, classes), p: make([]float64, classes)}
	r.most = mostScores(memory)
	r.ranked = make([]scores[float32], rankedClasses(classes, multi))
	if !multi && classes <= MostConfused {
		r.confusion = make([][]int64, classes)
		for i := range r.confusion {
			r.confusion[i] = make([]int64, classes)
		}
	}
	return r
}

// Add takes logits and labels as a Single does.
func (r *Reporter) Add(logits []float32, labels []uint32) {
	eachRow(logits, labels, len(r.classes), func(row []float32, label uint32) {
		guess := Predicted(row)
		r.rows++
		if guess == label {
			r.classes[label].truePos++
		} else {
			r.classes[guess].falsePos++
			r.classes[label].falseNeg++
		}
		if r.confusion != nil {
			r.confusion[label][guess]++
		}
		r.softmax(row)
		confidence := r.p[guess]
		if bin := int(math.Ceil(confidence*bins)) - 1; bin >= 0 && bin < bins { // not NaN
			b := &r.bins[bin]
			b.rows++
			b.confidence += confidence
			if guess == label {
				b.right++
			}
		}
		if len(r.classes) == 2 {
			r.rank(0, row[1]-row[0], label == 1)
			return
		}
		for c := range r.ranked {
			r.rank(c, float32(r.p[c]), uint32(c) == label)
		}
	})
}

// AddMulti takes logits and targets as a Multi does.
func (r *Reporter) AddMulti(logits, targets []float32) {
	if n := len(r.classes); n > 0 {
		r.rows += int64(len(targets) / n)
	}
	eachCell(logits, targets, len(r.classes), func(class int, logit float32, positive bool) {
		r.classes[class].count(logit, positive)
		r.rank(class, logit, positive)
	})
}

// rank keeps a score of a class, unless there are too many.
func (r *Reporter) rank(class int, score float32, positive bool) {
	if r.kept++; r.kept > r.most {
		r.ranked = nil
	}
	if r.ranked != nil {
		r.ranked[class].add(score, positive)
	}
}

// softmax sets p to the probabilities of a row.
func (r *Reporter) softmax(row []float32) {
	most := math.Inf(-1)
	for _, x := range row {
		most = max(most, float64(x))
	}
	sum := 0.0
	for i, x := range row {
		r.p[i] = math.Exp(float64(x) - most)
		sum += r.p[i]
	}
	for i := range r.p {
		r.p[i] /= sum
	}
}

// Report returns the report of all rows that were added, with the names of classes where they have
// some. The report of a nil Reporter is nil.
func (r *Reporter) Report(names []string) *Report {
	if r == nil {
		return nil
	}
	all := &Report{Count: r.rows, Classes: make([]ClassReport, len(r.classes)), Confusion: r.confusion}
	var recall, f1, auc, ap mean
	right := int64(0)
	for i, o := range r.classes {
		right += o.truePos
		c := &all.Classes[i]
		if i < len(names) {
			c.Name = names[i]
		}
		c.Count, c.Predicted = o.truePos+o.falseNeg, o.truePos+o.falsePos
		c.Precision, c.Recall = ratio(o.truePos, c.Predicted), ratio(o.truePos, c.Count)
		recall.add(c.Recall)
		if v, ok := o.f1(); ok {
			c.F1 = &v
			f1.add(c.F1)
		}
		if i < len(r.ranked) {
			c.ROCAUC, c.PRAUC = r.ranked[i].areas()
			auc.add(c.ROCAUC)
			ap.add(c.PRAUC)
		}
	}
	if len(r.ranked) == 1 && len(all.Classes) == 2 { // they are of the second class
		one := &all.Classes[0]
		all.Classes[1].ROCAUC, all.Classes[1].PRAUC = one.ROCAUC, one.PRAUC
		one.ROCAUC, one.PRAUC = nil, nil
	}
	if len(all.Classes) > MostReported {
		all.Classes = nil
	}
	all.BalancedAccuracy, all.MacroF1, all.ROCAUC, all.PRAUC = recall.value(), f1.value(), auc.value(), ap.value()
	if !r.multi {
		all.Accuracy = ratio(right, r.rows)
		all.calibrate(r)
	}
	return all
}

// calibrate fills the bins, and their mean distance from accuracy.
func (all *Report) calibrate(r *Reporter) {
	rows, apart := int64(0), 0.0
	for i, b := range r.bins {
		bin := Bin{From: float64(i) / bins, To: float64(i+1) / bins, Count: b.rows, Accuracy: ratio(b.right, b.rows)}
		if b.rows > 0 {
			confidence := b.confidence / float64(b.rows)
			bin.Confidence = &confidence
			apart += math.Abs(b.confidence - float64(b.right))
		}
		rows += b.rows
		all.Calibration = append(all.Calibration, bin)
	}
	if rows > 0 {
		apart /= float64(rows)
		all.CalibrationError = &apart
	}
}

// areas returns the areas under the curves of a class, or nil if a score is NaN, or no positive or
// no negative is there.
func (s *scores[S]) areas() (roc, pr *float64) {
	if s.nan > 0 || !s.defined() {
		return nil, nil
	}
	a, p := s.auc(), s.ap()
	return &a, &p
}

// mean adds up values that are defined.
type mean struct {
	sum float64
	n   int
}

func (m *mean) add(v *float64) {
	if v != nil {
		m.sum += *v
		m.n++
	}
}

func (m *mean) value() *float64 {
	if m.n == 0 {
		return nil
	}
	v := m.sum / float64(m.n)
	return &v
}

func ratio(part, all int64) *float64 {
	if all == 0 {
		return nil
	}
	v := float64(part) / float64(all)
	return &v
}
