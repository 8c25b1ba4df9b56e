package store

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxPart bounds the length of a name, so that three names fit in a section's path.
const maxPart = 100

// CleanName turns s into a valid name for a dataset. Everything but ASCII letters, digits, _, - and
// . becomes _, and so does a leading dot, since directories are named after datasets. CleanName
// keeps valid names unchanged.
func CleanName(s string) string {
	if s == "" {
		return "dataset"
	}
	b := []byte(strings.Map(func(c rune) rune {
		if c == '.' || wordRune(c) {
			return c
		}
		return '_'
	}, s))
	if b[0] == '.' {
		b[0] = '_'
	}
	return string(b[:min(len(b), maxPart)])
}

func wordRune(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// checkNames refuses names that cannot be parts of a path. A relation's key joins three names with
// "__", so no name may hold that. kind is for the error.
func checkNames(kind string, names ...string) error {
	for _, s := range names {
		if s == "" || len(s) > maxPart || strings.Contains(s, "__") || s[0] == '_' || s[len(s)-1] == '_' ||
			strings.ContainsFunc(s, func(c rune) bool { return !wordRune(c) }) {
			return fmt.Errorf("%s %q: names are up to %d letters, digits, _ and -, without a _ at either end or two in a row",
				kind, s, maxPart)
		}
	}
	return nil
}

// splitKey undoes [Relation.Key].
func splitKey(key string) []string { return strings.Split(key, "__") }

// checkColumns refuses columns whose files would clash with the topology's or each other's, and
// elements that readers do not support.
func (r *Relation) checkColumns() error {
	for i, c := range r.Columns {
		if err := checkNames("column", c.Name); err != nil {
			return err
		}
		switch size := c.Elem.Size(); {
		case c.Name == "offsets" || c.Name == "neighbors":
			return fmt.Errorf("relation %s: a column cannot be called %s, as the topology itself is", r.Key(), c.Name)
		case c.Elem == F64, size != 1 && size != 4 && size != 8:
			return fmt.Errorf("relation %s: column %s is %v; columns have elements of 1, 4 or 8 bytes, and not f64", r.Key(), c.Name, c.Elem)
		case c.Name == EdgeID && c.Elem != U32 && c.Elem != U64:
			return fmt.Errorf("relation %s: column %s is %v; edges are numbered in u32 or u64", r.Key(), c.Name, c.Elem)
		}
		for _, o := range r.Columns[:i] {
			if o.Name == c.Name {
				return fmt.Errorf("relation %s: there are two columns %s", r.Key(), c.Name)
			}
		}
	}
	return nil
}

// The paths of sections: the writer uses them, and the reader accepts no others.

func (t *NodeType) originalPath() string { return "ids/" + t.Name + "/original.i64" }
func (t *NodeType) orderPath() string    { return "ids/" + t.Name + "/order.u32" }

// The two orders of names, as paths have them.
const (
	byName = "by-name"
	byNode = "by-node"
)

func (t *NodeType) namesPath(by string, i int) string {
	return fmt.Sprintf("ids/%s/%s-%05d.sst", t.Name, by, i)
}

func (r *Relation) offsetsPath() string   { return "topo/" + r.Key() + "/offsets.u64" }
func (r *Relation) neighborsPath() string { return "topo/" + r.Key() + "/neighbors.u32" }
func (r *Relation) blocksPath() string    { return "part/" + r.Key() + "/blocks.u64" }

func (r *Relation) columnPath(i int) string {
	return fmt.Sprintf("topo/%s/%s.%v", r.Key(), r.Columns[i].Name, r.Columns[i].Elem)
}

func (t *Table) shardPath(i int) string {
	if t.Stream != "" {
		return fmt.Sprintf("stream/%s/%s-%05d.%v", t.Stream, t.Name, i, t.Elem)
	}
	return fmt.Sprintf("feat/%s/%s-%05d.%v", t.Owner(), t.Name, i, t.Elem)
}

func (l *Label) path() string {
	return fmt.Sprintf("label/%s/%s.%v", l.NodeType, l.Name, l.elem())
}

// elem returns the element type of the label's section.
func (l *Label) elem() Elem {
	switch {
	case l.Multi:
		return U8
	case l.Numbers:
		return F32
	}
	return I32
}

func (s *Split) partPath(i int) string {
	return "split/" + s.Name + "/" + [...]string{"train", "valid", "test"}[i] + ".u32"
}

// toValid replaces the bytes of free text that are not UTF-8, since JSON would change them.
func toValid(s string) string { return strings.ToValidUTF8(s, string(utf8.RuneError)) }

func toValidAll(list []string) []string {
	if list == nil {
		return nil
	}
	valid := make([]string, len(list))
	for i, s := range list {
		valid[i] = toValid(s)
	}
	return valid
}

func toValidKeys[V any](m map[string]V, value func(V) V) map[string]V {
	if m == nil {
		return nil
	}
	valid := make(map[string]V, len(m))
	for k, v := range m {
		valid[toValid(k)] = value(v)
	}
	return valid
}

// valid returns p with all texts made valid UTF-8.
func (p Provenance) valid() Provenance {
	same := func(n int64) int64 { return n }
	return Provenance{
		Tool: toValid(p.Tool), Source: toValid(p.Source), Notes: toValidAll(p.Notes),
		Options: toValidKeys(p.Options, toValid), Counts: toValidKeys(p.Counts, same),
	}
}
