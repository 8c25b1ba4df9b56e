package arrays

import (
	"context"
	"fmt"
	"strconv"

	"github.com/gnnstore/gnnstore/ingest"
)

const splitFlag = "{array_split}"

// NoSplit as Options.Split takes no array for a split.
const NoSplit = "none"

// parts is an array with the part of a split for each node: words, or 0, 1 and 2.
type parts struct {
	*array
	nodeType string
	given    bool // the user named it; else its name suggests it, and the values must fit
	settled  bool
}

// findPartsOf finds the array that has a part for each node. others reports whether other arrays
// hold the split already.
func (s *Source) findPartsOf(prefix, name string, t *nodeType, others bool) error {
	given := s.o.Split
	if given == NoSplit || prefix != "" && given != "" {
		return nil
	}
	if given != "" {
		if others {
			return fmt.Errorf("%s %s: the split is in other arrays; leave {array_train}, {array_valid} and {array_test} out, or this", splitFlag, given)
		}
		a, err := s.pick("", splitFlag, given, nil)
		if err != nil {
			return err
		}
		if len(a.Shape) != 1 || !a.Type.Number() && !a.isText() {
			return fmt.Errorf("%s, and train, valid or test, or 0, 1 or 2, is expected for each node", a.form())
		}
		if err := t.hold(a); err != nil {
			return err
		}
		s.parts = append(s.parts, &parts{array: a, nodeType: name, given: true})
		return nil
	}
	if others {
		return nil
	}
	for _, usual := range ingest.SplitNames {
		if !s.bag.has(prefix + usual) {
			continue
		}
		a, err := s.bag.get(prefix + usual)
		if err == nil && len(a.Shape) == 1 && a.Shape[0] == t.count && (a.isText() || a.Type.Number() && !a.Type.Floating()) {
			s.parts = append(s.parts, &parts{array: a, nodeType: name})
			return nil
		}
		s.skip(prefix+usual, "it is called as a split, and has no part for each node")
	}
	return nil
}

// settleParts reads each array of parts, and makes a split of it if its values are parts.
func (s *Source) settleParts(ctx context.Context) error {
	for _, p := range s.parts {
		if p.settled {
			continue
		}
		text, train, seen := p.isText(), false, false
		bad, err := "", error(nil)
		err = p.each(ctx, func(first int64, values []string) error {
			for i, v := range values {
				part, ok := p.of(v)
				if !ok && bad == "" {
					bad = fmt.Sprintf("row %d: %.40q", first+int64(i), v)
				}
				train, seen = train || part == int(ingest.Train), seen || ok && part != ingest.NoPart
			}
			return nil
		})
		if err != nil {
			return err
		}
		switch {
		case bad != "" && p.given:
			return fmt.Errorf("%s: %s is no part of a split: there are train, valid and test, or 0, 1 and 2", p.name, bad)
		case bad != "" || !seen:
			s.skip(p.key, "it is called as a split, and its values are no parts of one; "+splitFlag+" NAME says another array")
		case !train:
			s.skip(p.key, "it is called as a split, and has no training nodes")
		case !text && !p.given && ingest.IsSplitName(p.key):
			return ingest.Ask("%s: is it a split? %s %s takes 0 to train, 1 to validate and 2 to test, and %s %s passes over it", p.name, splitFlag, p.key, splitFlag, NoSplit)
		case !text && !p.given:
			s.skip(p.key, "it may be a split; "+splitFlag+" "+p.key+" takes 0 to train, 1 to validate and 2 to test")
		default:
			if !p.given {
				s.skip(p.key, "the split is this array, by its name and words; "+splitFlag+" "+NoSplit+" passes over it")
			}
			s.splits = append(s.splits, &split{nodes: p.Shape[0], words: p})
			s.schema.Splits = append(s.schema.Splits, ingest.Split{Name: "given", NodeType: p.nodeType})
		}
		p.settled = true
	}
	return nil
}

// of returns the part that a value means. ok is false if it means none.
func (p *parts) of(value string) (part int, ok bool) {
	if part, ok = ingest.PartOf([]byte(value)); ok {
		return part, p.isText()
	}
	if p.isText() && !p.given {
		return ingest.NoPart, false
	}
	return ingest.PartNumber([]byte(value))
}

// each visits the values as text. Its own errors name the file and the array.
func (p *parts) each(ctx context.Context, visit func(first int64, values []string) error) error {
	n := p.Shape[0]
	if p.isText() {
		y := &label{array: p.array}
		var stopped error
		err := y.eachText(ctx, func(first int64, texts []string) error {
			stopped = visit(first, texts)
			return stopped
		})
		if err != nil && stopped == nil {
			err = p.fail(ctx, err)
		}
		return err
	}
	in, buf := p.ids(1), make([]int64, min(n, ingest.ChunkRows))
	texts := make([]string, len(buf))
	for first := int64(0); first < n; {
		if err := ctx.Err(); err != nil {
			return err
		}
		k, err := in.read(buf[:min(int64(len(buf)), n-first)])
		if err != nil {
			return p.fail(ctx, err)
		}
		for i, v := range buf[:k] {
			texts[i] = strconv.FormatInt(v, 10)
		}
		if err := visit(first, texts[:k]); err != nil {
			return err
		}
		first += int64(k)
	}
	return nil
}

// emit streams the ids of the nodes in a part.
func (p *parts) emit(ctx context.Context, part ingest.Part, emit func(ingest.IDChunk) error) error {
	place, ids := ingest.Place{File: p.name}, []int64(nil)
	return p.each(ctx, func(first int64, values []string) error {
		ids = ids[:0]
		for i, v := range values {
			if of, ok := p.of(v); ok && of == int(part) {
				ids = append(ids, first+int64(i))
			}
		}
		if len(ids) == 0 {
			return nil
		}
		if err := emit(ingest.IDChunk{Place: place, IDs: ids}); err != nil {
			return err
		}
		place.First += int64(len(ids))
		return nil
	})
}
