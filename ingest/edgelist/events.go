package edgelist

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/lines"
	"github.com/gnnstore/gnnstore/store"
)

// A list of events is one of edges with a time each. Its time, label and part are kept columns, in
// this order; the part, which a Source gives apart, is the last.

// StreamName is the name of a list's stream.
const StreamName = ingest.StreamName

// shortHeader is a header that may have fewer cells than rows have, as JODIE's: the last stands for
// all that follow.
const shortHeader = "short"

// flags of the columns of events.
const (
	timeFlag  = "{time}"
	labelFlag = "{label}"
	partFlag  = "{part}"
)

// isDateName reports whether a header names dates. It is asked where no header names times.
func isDateName(header string) bool {
	return slices.Contains([]string{"date", "createdat", "timestamputc"}, ingest.EndName(header))
}

// findTime settles which column holds the times of events: the one that Options name, or whose
// header tells, or the third of three.
func (s *Source) findTime() error {
	if s.o.Time != "" {
		return nil
	}
	t, err := openTable(s.files[0], s.form, true, true)
	if err != nil {
		return err
	}
	defer t.Close()
	named := ingest.IsTimeName
	if !slices.ContainsFunc(t.header, named) {
		named = isDateName
	}
	for i, h := range t.header {
		if !named(h) {
			continue
		}
		if s.o.Time != "" {
			return ingest.Ask("%s: which of the columns %s is the time of an event? Several names could be, so say {time} COLUMN", t.Name(), lines.List(t.header))
		}
		s.o.Time = strconv.Itoa(i + 1)
	}
	ask := ingest.Ask
	if t.columns < 3 { // then none can be: an event has two ids and a time
		ask = fmt.Errorf
	}
	counting := ""
	if t.counts != nil && t.columns < 3 {
		counting = ", or {header} yes if this row counts nodes and events"
	}
	switch {
	case s.o.Time != "":
	case t.columns == 0:
		return fmt.Errorf("%s: there are no events in it", t.Name())
	case t.header == nil && t.columns == 3:
		s.o.Time = "3"
	case t.header == nil:
		return ask("%s: which of its %d columns is the time of an event? No header tells, so say {time} with the number of the column%s", t.Name(), t.columns, counting)
	default:
		return ask("%s: which of the columns %s is the time of an event? Their names do not tell, so say {time} COLUMN", t.Name(), lines.List(t.header))
	}
	return nil
}

// eventColumns are the columns that events keep.
func (o *Options) eventColumns() (all []keptColumn) {
	for _, c := range []keptColumn{
		{name: "time", from: o.Time, elem: store.F64, flag: timeFlag}, {name: "label", from: o.EventLabel, elem: store.I32, flag: labelFlag},
		{name: "part", from: o.Part, elem: store.U8, flag: partFlag},
	} {
		if c.from != "" {
			all = append(all, c)
		}
	}
	return all
}

// time reads the time of an event.
func (r *edgeReader) time(cells [][]byte, c *keptColumn) (uint64, error) {
	cell, err := r.cell(cells, c.at)
	if err != nil {
		return 0, err
	}
	if missing(cell) {
		return 0, bad(c.at+1, "an event's time is missing; %s", r.mend())
	}
	if err := r.undivided(cells, c.at); err != nil {
		return 0, err
	}
	plain := cell
	if r.numerals != (lines.Numerals{}) && !isDate(cell) {
		var ok bool
		if plain, ok = r.numerals.Plain(r.token[:0], cell); !ok {
			return 0, bad(c.at+1, "%q is not a number; %s", lines.Clip(cell), r.spelled(cell, "choose another {time}"))
		}
	}
	v, err := r.forms.clock.Seconds(plain)
	if err != nil {
		if remedy := r.numerals.Spelled(cell); remedy != "" {
			err = fmt.Errorf("%q is not a number; %s", lines.Clip(cell), remedy)
		}
		return 0, bad(c.at+1, "%w", err)
	}
	return math.Float64bits(v), nil
}

// undivided refuses a date whose time of day is in the next cell, where blanks part cells.
func (r *edgeReader) undivided(cells [][]byte, column int) error {
	if r.delim != ' ' || column+1 >= len(cells) {
		return nil
	}
	next := cells[column+1]
	if _, _, dated := lines.ParseInstant(cells[column]); dated && len(next) >= 5 && next[2] == ':' {
		return bad(column+1, "the time of day of %q is in the next column, since blanks part cells; write a T in place of "+
			"that blank, or tabs or commas between cells", lines.Clip(cells[column]))
	}
	return nil
}

// EventNumbers streams the integers in a column of a list of events, each with its line. It returns
// false if there is no such column.
func (s *Source) EventNumbers(ctx context.Context, column string, visit func(line, number int64) error) (bool, error) {
	for i, path := range s.files {
		t, err := openTable(path, s.form, true, s.text)
		if err != nil {
			return false, err
		}
		at := slices.Index(t.header, column)
		if at < 0 && i == 0 {
			return false, t.Close()
		}
		err = t.eachNumber(ctx, at, visit)
		if cerr := t.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return true, err
		}
	}
	return true, nil
}

func (t *table) eachNumber(ctx context.Context, column int, visit func(line, number int64) error) error {
	for n := 0; ; n++ {
		if n%ingest.ChunkRows == 0 && ctx.Err() != nil {
			return fmt.Errorf("%s: %w", t.Name(), ctx.Err())
		}
		cells, err := t.next()
		if err == io.EOF {
			return nil
		}
		var cell []byte
		if err == nil {
			cell, err = t.cell(cells, column)
		}
		number, ok := t.numerals.Integer(cell)
		if err == nil && !ok {
			err = bad(column+1, "%q is not an integer", lines.Clip(cell))
		}
		if err == nil {
			err = visit(t.at, number)
		}
		if err != nil {
			return t.judge(nil, err)
		}
	}
}

// readLabel keeps the label of an event, whose class is found once all of its row is good.
func (r *edgeReader) readLabel(cells [][]byte, c *keptColumn) (uint64, error) {
	cell, err := r.cell(cells, c.at)
	if err != nil {
		return 0, err
	}
	token, there, err := ingest.LabelToken(cell, r.token[:0])
	if err != nil {
		return 0, bad(c.at+1, "%w", err)
	}
	r.label, r.labelled = token, there
	return math.MaxUint32, nil // -1, missing
}

// classify gives the event read last its class, or learns it.
func (r *edgeReader) classify(c *ingest.EdgeChunk) error {
	if r.classes == nil || !r.labelled {
		return nil
	}
	if r.classes.learning {
		r.classes.Learn(r.label)
		return nil
	}
	class, err := r.classes.Of(r.label)
	if err != nil {
		return fmt.Errorf("%s: line %d: %w", r.Name(), r.at, err)
	}
	if class >= ingest.MaxClasses {
		return fmt.Errorf("%s: line %d: label %d; labels of events are classes, numbers from 0 to %d: number them anew, or choose another %s", r.Name(), r.at,
			class, ingest.MaxClasses-1, labelFlag)
	}
	labels := c.Values[1]
	labels[len(labels)-1] = uint64(uint32(class))
	return nil
}

// classes collects the classes of events' labels.
type classes struct {
	*ingest.Category
	learning bool
}

// count is the number of classes, 0 of nil.
func (c *classes) count() int {
	if c == nil {
		return 0
	}
	return c.Len()
}

// learnClasses reads the list through for the different labels of its events.
func (s *Source) learnClasses(ctx context.Context) error {
	s.classes = &classes{ingest.NewCategory(ingest.MaxClasses), true}
	if err := s.eachEdge(ctx, func(ingest.EdgeChunk) error { return nil }); err != nil {
		return err
	}
	s.classes.learning = false
	if err := s.classes.SettleLabel(); err != nil {
		return fmt.Errorf("%s: %s %s: %w; choose another column", s.files[0], labelFlag, s.o.EventLabel, err)
	}
	return nil
}

// eventsSchema makes the schema of a list of edges one of events.
func (s *Source) eventsSchema(schema *ingest.Schema) {
	to := &schema.Relations[0]
	to.Name, to.Columns, to.Stream = StreamName, to.Columns[:1], &ingest.Stream{Time: "time"}
	if s.o.EventLabel != "" {
		to.Columns = s.edgeColumns()[:2]
		to.Stream.Label, to.Stream.ClassNames = "label", s.classes.Names
	}
	to.Parted = s.o.Part != ""
	if s.o.Bipartite {
		user, item := schema.NodeTypes[0], schema.NodeTypes[0]
		user.Name, item.Name = "user", "item"
		schema.NodeTypes = []ingest.NodeType{user, item}
		to.Src, to.Dst = user.Name, item.Name
	}
	for i := range schema.Tables {
		schema.Tables[i].Name, schema.Tables[i].Relation = "feat", to.Key()
	}
	schema.Featureless = true
}

// parts takes the parts of events out of their values.
func parts(c *ingest.EdgeChunk) {
	last := len(c.Values) - 1
	for _, p := range c.Values[last] {
		c.Parts = append(c.Parts, ingest.Part(p))
	}
	c.Values = c.Values[:last]
}

// validateEvents reports what does not go with events.
func (o *Options) validateEvents() (errs []error) {
	if !o.Events {
		if o.Time != "" || o.TimeUnit != "" || o.EventLabel != "" || o.Bipartite {
			errs = append(errs, errors.New("{time}, {time_unit} and {bipartite} are for events; leave them out"))
		}
		return errs
	}
	if o.TimeUnit != "" && lines.Units[o.TimeUnit] == 0 {
		errs = append(errs, fmt.Errorf("{time_unit} %q: choose s, ms, us or ns", o.TimeUnit))
	}
	if o.Weight != "" || len(o.EdgeColumns) > 0 || o.Nodes != "" || o.Features != "" || len(o.Ends) > 2 {
		errs = append(errs, errors.New("events have a time, a label and features, and no other columns, no weights and no table of nodes; leave these out"))
	}
	if o.Bipartite && (o.Count > 0 || o.OneSpace) {
		errs = append(errs, errors.New("{bipartite}: sources and destinations are numbered apart; leave {node_count} and {one_id_space} out"))
	}
	return errs
}
