package sourcetest

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/store/storetest"
)

// promises are the promises of [ingest.Source], and their tests. A costly test reads all sections
// several times.
var promises = []struct {
	name   string
	costly bool
	check  func(c *conformance) error
}{
	{"schema is well formed", false, (*conformance).checkSchema},
	{"identity is the same for the same input", false, (*conformance).checkIdentity},
	{"nodes and edges have a row each", false, (*conformance).checkCounts},
	{"ids are in range", false, (*conformance).checkIDs},
	{"labels are in range", false, (*conformance).checkLabels},
	{"sections can be read again in any order", true, (*conformance).checkAgain},
	{"chunks are lent for the call", true, (*conformance).checkLent},
	{"emit is called in the reader's goroutine", true, (*conformance).checkGoroutine},
	{"an error of emit ends a section", true, (*conformance).checkStop},
	{"a cancelled context ends a section", true, (*conformance).checkCancelled},
	{"a context that is cancelled at any moment", true, (*conformance).checkCancelledAnywhere},
	{"nothing is left when a section ends", true, (*conformance).checkLeftovers},
	{"Close may be called twice", false, (*conformance).checkClose},
	{"rows can be had in any order", false, (*conformance).checkRowMaker},
	{"missing rows are zeros, and counted", false, (*conformance).checkSparse},
	{"bad rows and remarks count once", true, (*conformance).checkReports},
}

// Conform tests that a source keeps the contract of [ingest.Source]. open opens the same sound
// input each time; more are for other layouts of the same format. Some section of some input must
// come in several chunks: more than 64 Ki edges are enough. Files and goroutines are counted, so no
// other test may run meanwhile.
func Conform(t *testing.T, open func() (ingest.Source, error), more ...func() (ingest.Source, error)) {
	t.Helper()
	several := false
	for input, open := range append([]func() (ingest.Source, error){open}, more...) {
		c, err := newConformance(open)
		require.NoError(t, err, "input %d", input)
		several = several || slices.ContainsFunc(c.want, func(r rows) bool { return r.chunks > 1 })
		for _, p := range promises {
			t.Run(fmt.Sprintf("input %d: %s", input, p.name), func(t *testing.T) {
				if input > 0 && p.costly {
					storetest.Long(t)
				}
				require.NoError(t, p.check(c))
			})
		}
	}
	require.True(t, several, "every section comes in one chunk, which tests little; use a larger input")
}

// conformance is a source under test, and what it gave when it was read first.
type conformance struct {
	open     func() (ingest.Source, error)
	schema   *ingest.Schema
	sections []section
	want     []rows // by section
}

func newConformance(open func() (ingest.Source, error)) (*conformance, error) {
	c := &conformance{open: open}
	return c, c.with(func(src ingest.Source, schema *ingest.Schema) error {
		c.schema, c.sections = schema, sections(schema)
		if err := c.checkSchema(); err != nil {
			return err // sections of other forms cannot be read
		}
		for _, s := range c.sections {
			r, err := s.read(context.Background(), src, nil)
			if err != nil {
				return err
			}
			c.want = append(c.want, r)
		}
		return nil
	})
}

// with opens a source, calls Schema and then visit, and closes the source.
func (c *conformance) with(visit func(src ingest.Source, schema *ingest.Schema) error) error {
	src, err := c.open()
	if err != nil {
		return err
	}
	schema, err := src.Schema(context.Background())
	if err == nil {
		err = visit(src, schema)
	}
	if cerr := src.Close(); err == nil {
		err = cerr
	}
	return err
}

// reads reads section i, and compares it with what came first.
func (c *conformance) reads(src ingest.Source, i int, when string) error {
	r, err := c.sections[i].read(context.Background(), src, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", when, err)
	}
	return c.compare(i, r, when)
}

func (c *conformance) compare(i int, r rows, when string) error {
	w := &c.want[i]
	floats := slices.EqualFunc(r.floats, w.floats, func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) })
	if same := floats && reflect.DeepEqual(r.ids, w.ids) && reflect.DeepEqual(r.texts, w.texts) && reflect.DeepEqual(r.values, w.values) &&
		slices.Equal(r.classes, w.classes); !same {
		return &Fault{c.sections[i].name, fmt.Sprintf("%s, it gives other rows than the first time (%d, and there were %d)", when, r.n, w.n)}
	}
	return nil
}

// checkAgain reads the sections backwards and forwards, then by another source.
func (c *conformance) checkAgain() error {
	err := c.with(func(src ingest.Source, _ *ingest.Schema) error {
		for i := range c.sections {
			if err := c.reads(src, len(c.sections)-1-i, "read in another order"); err != nil {
				return err
			}
		}
		for i := range c.sections {
			if err := c.reads(src, i, "read again"); err != nil {
				return err
			}
		}
		schema, err := src.Schema(context.Background())
		if err != nil {
			return err
		}
		return c.sameSchema(schema, "once its sections were read")
	})
	if err != nil {
		return err
	}
	return c.with(func(src ingest.Source, _ *ingest.Schema) error {
		for i := range c.sections {
			if err := c.reads(src, i, "read by another Source"); err != nil {
				return err
			}
		}
		return nil
	})
}

func (c *conformance) sameSchema(schema *ingest.Schema, when string) error {
	a, b := *schema, *c.schema
	a.Identity, b.Identity = "", ""
	if !reflect.DeepEqual(a, b) {
		return &Fault{"schema", fmt.Sprintf("%s, it is %+v, and first it was %+v", when, a, b)}
	}
	return nil
}

// checkIdentity compares two Sources of one input.
func (c *conformance) checkIdentity() error {
	return c.with(func(src ingest.Source, schema *ingest.Schema) error {
		if schema.Identity != c.schema.Identity {
			return &Fault{"schema", fmt.Sprintf("the identity is %q, and for another Source of the same input it was %q", schema.Identity, c.schema.Identity)}
		}
		return c.sameSchema(schema, "by another Source")
	})
}
