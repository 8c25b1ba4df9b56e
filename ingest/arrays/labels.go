package arrays

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/build"
	"github.com/gnnstore/gnnstore/ingest/npy"
)

// label is an array of labels.
type label struct {
	*array
	texts   *ingest.Category // of text, once learnt
	numbers bool             // they are numbers to learn, and no classes
	oneHot  bool             // a row of zeros and ones is one class, and all -1 or NaN where that is missing
	learned bool
}

// isText reports whether the elements are texts.
func (a *array) isText() bool { return a.Type.Kind == npy.Unicode || a.Type.Kind == npy.Bytes }

// learnLabels reads through what does not say of itself how many classes there are: text, and
// matrices, which are one class a node when every row has exactly one 1.
func (s *Source) learnLabels(ctx context.Context) error {
	for i, y := range s.labels {
		l := &s.schema.Labels[i]
		switch {
		case y.learned, y.numbers:
		case y.isText():
			y.texts = ingest.NewCategory(ingest.MaxClasses)
			err := y.eachText(ctx, func(_ int64, texts []string) error {
				for _, text := range texts {
					if err := y.texts.LearnText(text); err != nil {
						return err
					}
				}
				return nil
			})
			if err == nil {
				if err = y.texts.SettleLabel(); err != nil {
					err = fmt.Errorf("%w; %s NAME says another array", err, labelsFlag)
				}
			}
			if err != nil {
				return y.fail(ctx, err)
			}
			l.Classes, l.ClassNames = y.texts.Len(), y.texts.Names
		case l.Multi && !s.o.MultiLabel && y.Shape[0] > 0:
			y.oneHot = true
			err := y.eachNumber(ctx, func(_ int64, rows []int32) error {
				for row := range slices.Chunk(rows, columns(y.array)) {
					y.oneHot = y.oneHot && hot(row) != several
				}
				return nil
			})
			if err != nil {
				return err
			}
			if y.oneHot {
				l.Multi = false
				s.skip(y.key, "each row has exactly one 1, so it is read as one class a node; {multi_label} reads it as any number of them")
			}
		}
		y.learned = true
	}
	return nil
}

const several = -2

// hot is the place of the only 1 in a row of zeros, -1 when all of it is missing, several
// otherwise.
func hot(row []int32) int32 {
	at, missing := int32(several), 0
	for c, x := range row {
		switch {
		case x < 0:
			missing++
		case x == 1 && at == several:
			at = int32(c)
		case x == 1:
			return several
		}
	}
	switch missing {
	case 0:
		return at
	case len(row):
		return -1
	}
	return several
}

// Labels streams the labels: classes, where negative numbers and NaN are missing, or zeros and
// ones; or numbers.
func (s *Source) Labels(ctx context.Context, i int, emit func(ingest.LabelChunk) error) error {
	if i < 0 || i >= len(s.labels) || !s.labels[i].learned {
		panic("arrays: no such label; they are those of Schema")
	}
	y := s.labels[i]
	var classes []int32
	send := func(first int64, values []int32) error {
		return emit(ingest.LabelChunk{Place: ingest.Place{File: y.name, First: first}, Values: values})
	}
	switch {
	case y.texts != nil:
		var stopped error
		err := y.eachText(ctx, func(first int64, texts []string) error {
			classes = classes[:0]
			for _, text := range texts {
				class, err := y.texts.OfText(text)
				if err != nil {
					return err
				}
				classes = append(classes, class)
			}
			stopped = send(first, classes)
			return stopped
		})
		if err != nil && stopped == nil {
			err = y.fail(ctx, err)
		}
		return err
	case y.numbers:
		return y.eachValue(ctx, send)
	case y.oneHot:
		return y.eachNumber(ctx, func(first int64, rows []int32) error {
			classes = classes[:0]
			for row := range slices.Chunk(rows, columns(y.array)) {
				classes = append(classes, max(hot(row), -1))
			}
			return send(first, classes)
		})
	}
	return y.eachNumber(ctx, send)
}

// eachText reads labels that are text. It returns visit's errors as they are, and errors of reading
// without the array's name.
func (y *label) eachText(ctx context.Context, visit func(first int64, texts []string) error) error {
	n, r := y.Shape[0], y.Reader()
	texts := make([]string, min(n, ingest.ChunkRows))
	for first := int64(0); first < n; {
		if err := ctx.Err(); err != nil {
			return err
		}
		k, err := r.ReadStrings(texts[:min(int64(len(texts)), n-first)])
		if err == nil {
			err = visit(first, texts[:k])
		}
		if err != nil {
			return err
		}
		first += int64(k)
	}
	return nil
}

// eachValue reads labels that are numbers to learn, as bits of float32: NaN is missing. Its errors
// are whole.
func (y *label) eachValue(ctx context.Context, visit func(first int64, bits []int32) error) error {
	n, r := y.Shape[0], y.Reader()
	values := make([]float32, min(n, ingest.ChunkRows))
	bits := make([]int32, len(values))
	for first := int64(0); first < n; {
		if err := ctx.Err(); err != nil {
			return err
		}
		k, err := r.ReadFloat32s(values[:min(int64(len(values)), n-first)])
		if err != nil {
			return y.fail(ctx, err)
		}
		for i, x := range values[:k] {
			bits[i] = int32(math.Float32bits(x))
		}
		if err := visit(first, bits[:k]); err != nil {
			return err
		}
		first += int64(k)
	}
	return nil
}

// eachNumber reads labels that are numbers, whole rows: -1 is missing. Its errors are whole.
func (y *label) eachNumber(ctx context.Context, visit func(first int64, values []int32) error) error {
	n, per := y.Shape[0], int64(columns(y.array))
	rows, r := min(n, max(ingest.ChunkRows/per, 1)), y.Reader()
	wide, classes := make([]float64, rows*per), make([]int32, rows*per)
	for first := int64(0); first < n; first += rows {
		if err := ctx.Err(); err != nil {
			return err
		}
		k := min(rows, n-first) * per
		if _, err := r.ReadFloat64s(wide[:k]); err != nil { // a class is far below 2^53
			return y.fail(ctx, err)
		}
		for i, v := range wide[:k] {
			switch {
			case math.IsNaN(v) || v < 0 && v == math.Trunc(v):
				classes[i] = -1
			case per > 1 && v != 0 && v != 1:
				return y.fail(ctx, fmt.Errorf("row %d: %s among the zeros and ones of its classes", first+int64(i)/per, number(v)))
			case v > math.MaxInt32 || v != math.Trunc(v):
				return y.fail(ctx, fmt.Errorf("row %d: %s is not the number of a class; to learn numbers, say %s %s%s", first+int64(i)/per, number(v), labelsFlag,
					y.key, valueLabel))
			default:
				classes[i] = int32(v)
			}
		}
		if err := visit(first, classes[:k]); err != nil {
			return err
		}
	}
	return nil
}

// Describe names the arrays of features, labels and weights.
func (s *Source) Describe() (d ingest.Description) {
	for _, a := range s.tables {
		d.Tables = append(d.Tables, build.Unnamed(a.key, columns(a)))
	}
	for _, y := range s.labels {
		d.Labels = append(d.Labels, y.key)
	}
	if s.events != nil {
		d.Relations = [][]string{s.events.describe()}
		return d
	}
	for _, e := range s.edges {
		var from []string
		if e.weight != nil {
			from = []string{e.weight.key}
		}
		d.Relations = append(d.Relations, from)
	}
	return d
}
