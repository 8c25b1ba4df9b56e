package edgelist

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/lines"
)

// Options locate ids and values in the tables. The zero value reads an edge list of two columns. A
// column is named by its header, or by its number, from 1.
type Options struct {
	// Header is "yes" where the edge list and the table of nodes begin with one, "no" where they do
	// not, or "auto" (the default): they do when no cell of the first row is a number. "short" is
	// "yes", and the header may have fewer cells than the rows.
	Header string
	Src    string // column of the edge list; default see the package comment
	Dst    string // column of the edge list
	Weight string // column of the edge list; default none
	// EdgeColumns are further columns of numbers that edges keep: NAME=COLUMN, as in "rating=3", or
	// a header alone, which is then the name in the dataset. Values are integers of 64 bits where
	// the first 1,000 rows have integers, else float32; a type behind the column chooses: ":f32",
	// ":i64", ":i32" or ":u8".
	EdgeColumns []string
	// EdgeFeatures are columns of numbers that make a table of edge features, a row an edge, in
	// their order: names, numbers, or a range of numbers, as in "4-103". Default none.
	EdgeFeatures []string
	// Ends are the first three at once: [SRC, DST] or [SRC, DST, WEIGHT].
	Ends   []string
	IDType string // "int", "text", or "auto" (the default), which the first rows tell
	Count  int64  // of nodes, whose ids are 0…Count-1; default not known

	OneSpace bool // both columns number the same nodes, whatever they look like

	// OwnNodes: the file of the edges lists the nodes as well; see [OpenMade].
	OwnNodes bool

	Nodes string // path of a table of nodes; default none
	ID    string // column of it; default "id", "node_id" or "node", else the first
	// Label is a column of the table of nodes, with ":value" behind it where it has numbers and no
	// classes. Default label, y and the like; "none" is none.
	Label string
	// MultiLabel: nodes have any number of classes. The column Label lists them, as in a|b or [a,
	// b], or Label names a column of zeros and ones for each class, A,B,C. Such columns are one
	// class a node without MultiLabel if each row has exactly one 1. OneLabel makes a class of each
	// list. Without both, Schema asks about a column that looks like lists: see ingest.ListsLabels.
	MultiLabel, OneLabel bool
	// Columns are the columns of the table of nodes that are features. Default all others of
	// numbers, or none beside Features.
	Columns []string

	// Features is the path of a map of features, or of an array in a .npy, .npz or .pt file, with
	// ":ARRAY" behind it where the file has several. Default none.
	Features string
	// FeatureRows is the order of the rows in an array of Features: ByID if row 0 is for the node
	// with id 0 and so on, or ByTable if rows are in the order of Nodes. The default is the order
	// that fits. If both fit, Schema asks.
	FeatureRows string
	// Missing selects what nodes without features get: "zeros" or "refuse". Default zeros for nodes
	// that the map has no list for, and refuse for rows of the table whose cells of features are
	// all empty.
	Missing string

	// MissingWords stand for no label and no feature in the table of nodes, beside nothing and nan.
	// Default none, and a label that may be such a word is asked about; "none" makes it a class.
	MissingWords []string

	// Events: rows are events, a stream in the order of Time. Nodes are of one type, or, where the
	// list is Bipartite, sources and destinations of two, "user" and "item", that are numbered
	// apart. Then there are no Weight, EdgeColumns, Nodes and Features.
	Events bool
	// Time is a column; default one that is called so, or the third of a list of three without
	// header.
	Time string
	// TimeUnit is the unit of times that are plain numbers: "s", "ms", "us" or "ns". Default none:
	// they stay.
	TimeUnit   string
	EventLabel string // column of classes of the source from the event on; default none
	// Part is a column of 0 to train, 1 to validate, 2 to test; default none. In a table of nodes
	// it is such a column, or one of the words train, valid and test, or three masks,
	// TRAIN,VALID,TEST, where an empty name is no part and "rest" the other nodes; default what is
	// called so, and "none" is none.
	Part      string
	Bipartite bool
	// Types is the header of a column of categories, text or integers. Each becomes a column of
	// features behind EdgeFeatures: 1 at the events of that type, else 0. Default none.
	Types string
	// Counted: a column without a name, if there is one, counts the rows of each file from 0.
	Counted bool
	// RowsBeside means that features of events are in a file beside the list. RowColumn is the
	// column with the number of an event's row in that file. Default: rows are in the order of
	// events.
	RowsBeside bool
	RowColumn  string

	// Decimal is the mark in numbers: "point" (the default) or "comma". Thousands is the mark
	// between groups of three digits: "comma", "point", "blank", "apostrophe" or "none". Default
	// none, and point in numbers with a decimal comma. Numbers of Parquet are as they are.
	Decimal, Thousands string

	// Encoding names the encoding of all text: "utf-8" (the default), "latin1", "cp1252", "utf-16"
	// or another that [lines.ParseEncoding] knows.
	Encoding string

	SkipBad int64 // rows that may be passed over; default none
	Memory  int64 // of the ingest, for arrays

	// Like is a dataset whose columns are taken, by name, for options that name none. Default none.
	Like *ingest.Like
}

// Validate reports every problem, a line each.
func (o *Options) Validate() error {
	var errs []error
	switch o.Header {
	case "", "auto", "yes", "no", shortHeader:
	default:
		errs = append(errs, fmt.Errorf("{header} %q: choose yes, no or auto", o.Header))
	}
	if _, err := o.form(); err != nil {
		errs = append(errs, err)
	}
	errs = append(errs, o.validateEvents()...)
	if o.Nodes == "" && !o.OwnNodes {
		part := o.Part
		if o.Events {
			part = ""
		}
		for _, flag := range []struct{ name, value string }{
			{partFlag, part}, {"{missing_words}", strings.Join(o.MissingWords, ",")}, {"{id}", o.ID},
			{"{label}", o.Label}, {"{feature_columns}", strings.Join(o.Columns, ",")},
			{"{multi_label}", map[bool]string{true: "given"}[o.MultiLabel || o.OneLabel]},
		} {
			if flag.value != "" {
				errs = append(errs, fmt.Errorf("%s: it names a column of the table of nodes; say which file that is with {nodes}",
					flag.name))
			}
		}
	}
	if n := len(o.Ends); n != 0 && (n < 2 || n > 3 || slices.Contains(o.Ends, "")) {
		errs = append(errs, fmt.Errorf("{columns} %s: name two columns, or three, SRC,DST,WEIGHT", strings.Join(o.Ends, ",")))
	} else if n != 0 && o.Src+o.Dst+o.Weight != "" {
		errs = append(errs, errors.New("{columns} names what {src}, {dst} and {weight} do; leave those out"))
	}
	if _, err := o.keptColumns(); err != nil {
		errs = append(errs, err)
	}
	switch o.IDType {
	case "", "auto", "int", "text":
	default:
		errs = append(errs, fmt.Errorf("{id_type} %q: choose int, text or auto", o.IDType))
	}
	switch o.Missing {
	case "", "zeros", "refuse":
	default:
		errs = append(errs, fmt.Errorf("{missing_features} %q: choose zeros or refuse", o.Missing))
	}
	if array := o.featureArray(); array != "" {
		if o.Missing != "" {
			errs = append(errs, fmt.Errorf("{missing_features} and {node_features} %s: an array has a row for each node; leave "+
				"{missing_features} out", array))
		}
	} else if o.FeatureRows != "" {
		errs = append(errs, errors.New("{feature_rows}: it goes with {node_features} and an array; leave it out"))
	}
	switch o.FeatureRows {
	case "", ByID, ByTable:
	default:
		errs = append(errs, fmt.Errorf("{feature_rows} %q: choose %s or %s", o.FeatureRows, ByID, ByTable))
	}
	if o.FeatureRows == ByTable && o.Nodes == "" {
		errs = append(errs, errors.New("{feature_rows} table: there is no table; name one with {nodes}"))
	}
	if o.Missing != "" && o.Features == "" && o.Nodes == "" && !o.OwnNodes {
		errs = append(errs, errors.New("{missing_features}: it goes with {node_features} and {nodes}, which may lack some"))
	}
	switch {
	case o.Count < 0 || o.Count > math.MaxUint32:
		errs = append(errs, fmt.Errorf("{node_count} %d: a graph has 1 to %d nodes", o.Count, math.MaxUint32))
	case o.Count > 0 && o.Nodes != "":
		errs = append(errs, errors.New("{node_count} and {nodes}: the table lists the nodes; leave {node_count} out"))
	case o.Count > 0 && o.IDType == "text":
		errs = append(errs, errors.New("{node_count} and {id_type} text: counted nodes have the ids from 0 on; leave one of them out"))
	}
	if o.Features != "" && o.featureArray() == "" && o.IDType == "text" {
		errs = append(errs, errors.New("{node_features} and {id_type} text: the map is from integers; choose one of them"))
	}
	if len(o.Columns) > 0 && o.Features != "" {
		errs = append(errs,
			errors.New("{feature_columns} and {node_features}: a graph has one table of features; choose one of them"))
	}
	return errors.Join(errs...)
}

// form describes the text of tables.
type form struct {
	header   string // as in Options
	numerals lines.Numerals
	encoding lines.Encoding
}

// form reads the options about the text of tables.
func (o *Options) form() (f form, err error) {
	f.header = o.Header
	var wrong error
	f.numerals, err = lines.ParseNumerals(o.Decimal, o.Thousands)
	f.encoding, wrong = lines.ParseEncoding(o.Encoding)
	return f, errors.Join(err, wrong)
}
