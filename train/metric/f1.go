package metric

// outcomes counts the predictions about a class.
type outcomes struct{ truePos, falsePos, falseNeg int64 }

// f1 is the harmonic mean of precision and recall. ok is false for a class that no label and no
// prediction names.
func (o outcomes) f1() (value float64, ok bool) {
	if o == (outcomes{}) {
		return 0, false
	}
	return 2 * float64(o.truePos) / float64(2*o.truePos+o.falsePos+o.falseNeg), true
}

// count counts a class that is predicted where its logit is above 0.
func (o *outcomes) count(logit float32, positive bool) {
	switch {
	case logit > 0 && positive:
		o.truePos++
	case logit > 0:
		o.falsePos++
	case positive:
		o.falseNeg++
	}
}

// f1 counts the outcomes of each class, for MicroF1 or MacroF1.
type f1 struct {
	kind    Kind
	classes []outcomes
}

func newF1(k Kind, classes int) f1 { return f1{k, make([]outcomes, classes)} }

// Value is the metric of all rows since the last Reset.
func (f *f1) Value() (float64, error) {
	var all outcomes
	var sum float64
	var named int
	for _, o := range f.classes {
		all.truePos += o.truePos
		all.falsePos += o.falsePos
		all.falseNeg += o.falseNeg
		if v, ok := o.f1(); ok {
			sum += v
			named++
		}
	}
	micro, ok := all.f1()
	switch {
	case !ok:
		return 0, undefined(f.kind, "no known label and no prediction names a class")
	case f.kind == MicroF1:
		return micro, nil
	}
	return sum / float64(named), nil
}

// Reset forgets all rows.
func (f *f1) Reset() { clear(f.classes) }

// singleF1 predicts the class of the largest logit.
type singleF1 struct{ f1 }

func (f *singleF1) Add(logits []float32, labels []uint32) {
	eachRow(logits, labels, len(f.classes), func(row []float32, label uint32) {
		if guess := Predicted(row); guess == label {
			f.classes[label].truePos++
		} else {
			f.classes[guess].falsePos++
			f.classes[label].falseNeg++
		}
	})
}

// multiF1 predicts every class whose logit is above 0.
type multiF1 struct{ f1 }

func (f *multiF1) Add(logits, targets []float32) {
	eachCell(logits, targets, len(f.classes), func(class int, logit float32, positive bool) {
		f.classes[class].count(logit, positive)
	})
}
