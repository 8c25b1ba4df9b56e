package ogb

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/csvgz"
	"github.com/gnnstore/gnnstore/ingest/lines"
)

// maxNames bounds the node types and the relations of a dataset; ogbl-biokg has 5 and 51.
const maxNames = 1 << 12

// checkName refuses what cannot be the name of a type or a relation: it becomes part of paths.
func checkName(name string) error {
	plain := func(r rune) bool { return r < ' ' || r == '/' || r == '\\' || r == 0x7f || r == '\uFFFD' }
	if name == "" || len(name) > 200 || name[0] == '.' || strings.Contains(name, "___") || strings.ContainsFunc(name, plain) {
		return fmt.Errorf("%q is not the name of a type or a relation", lines.Clip([]byte(name)))
	}
	return nil
}

// splitTriplet takes head___relation___tail apart. The separators are exactly three underscores, so
// that names may hold one or two; what reads in two ways is no triplet.
func splitTriplet(key string) (parts [3]string, ok bool) {
	found, start := 0, 0
	for i := 0; i < len(key); i++ {
		if key[i] != '_' {
			continue
		}
		end := i
		for end < len(key) && key[end] == '_' {
			end++
		}
		switch run := end - i; {
		case run > 3 || run == 3 && found == 2:
			return parts, false
		case run == 3:
			parts[found] = key[start:i]
			found++
			start = end
		}
		i = end - 1
	}
	if found != 2 {
		return parts, false
	}
	parts[2] = key[start:]
	for _, p := range parts {
		if checkName(p) != nil {
			return parts, false
		}
	}
	return parts, true
}

func joinTriplet(parts [3]string) string { return strings.Join(parts[:], "___") }

// cells cuts a line of names.
func cells(in *csvgz.Scanner, most int) ([]string, error) {
	line, err := in.Next()
	if err != nil {
		return nil, err
	}
	if n := strings.Count(string(line), ",") + 1; n > most {
		return nil, in.Errorf("%d names, and %d are the most", n, most)
	}
	names := strings.Split(string(line), ",")
	for i, name := range names {
		names[i] = strings.Trim(strings.TrimSpace(name), `"`)
	}
	return names, nil
}

// readNamed reads a table with a header of node types and one row.
func (s *Source) readNamed(file string) (names, values []string, err error) {
	s.uses(file)
	in, err := s.csv(file)
	if err != nil {
		return nil, nil, err
	}
	defer in.Close()
	if names, err = cells(in.Scanner, maxNames); err == nil {
		values, err = cells(in.Scanner, maxNames)
	}
	if err == io.EOF {
		return nil, nil, fmt.Errorf("%s: a line of node types and a line of their values are expected; fetch it again", s.at(file))
	}
	if err != nil {
		return nil, nil, err
	}
	if len(names) != len(values) {
		return nil, nil, in.Errorf("%d values for %d node types", len(values), len(names))
	}
	for i, name := range names {
		if err := checkName(name); err != nil {
			return nil, nil, in.ErrorAt(1, "%w", err)
		}
		if slices.Contains(names[:i], name) {
			return nil, nil, in.ErrorAt(1, "node type %s is there twice", name)
		}
	}
	if more, err := in.Rest(); err != nil {
		return nil, nil, err
	} else if more > 0 {
		return nil, nil, in.Errorf("a second graph; node-property datasets have one")
	}
	return names, values, nil
}

// readFlags reads the types that are True in such a table; nil when there is no such file.
func (s *Source) readFlags(file string) (map[string]bool, error) {
	if !s.has(file) {
		return nil, nil
	}
	names, values, err := s.readNamed(file)
	if err != nil {
		return nil, err
	}
	flags := make(map[string]bool)
	for i, v := range values {
		b, err := strconv.ParseBool(strings.ToLower(v))
		if err != nil {
			return nil, fmt.Errorf("%s: line 2: %q is neither True nor False", s.at(file), lines.Clip([]byte(v)))
		}
		flags[names[i]] = b
	}
	return flags, nil
}

// readTriplets reads the list of relations, sorted as upstream processes them.
func (s *Source) readTriplets(file string) ([][3]string, error) {
	s.uses(file)
	in, err := s.csv(file)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	var triplets [][3]string
	for {
		names, err := cells(in.Scanner, 3)
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		if len(names) == 1 && names[0] == "" {
			continue // the last line, or of no use
		}
		if len(names) != 3 {
			return nil, in.Errorf("%d names, where head, relation and tail are expected", len(names))
		}
		parts := [3]string(names)
		// Its folder must read back as these three.
		if again, ok := splitTriplet(joinTriplet(parts)); !ok || again != parts {
			return nil, in.Errorf("%q is no triplet of names", lines.Clip([]byte(strings.Join(names, ","))))
		}
		if slices.Contains(triplets, parts) {
			return nil, in.Errorf("relation %s is there twice", joinTriplet(parts))
		}
		if triplets = append(triplets, parts); len(triplets) > maxNames {
			return nil, in.Errorf("%d relations are the most", maxNames)
		}
	}
	slices.SortFunc(triplets, func(a, b [3]string) int { return slices.Compare(a[:], b[:]) })
	return triplets, nil
}

// checkEnds refuses a relation to a type that was not declared.
func (s *Source) checkEnds(triplet [3]string, where, declared string) error {
	for _, end := range []string{triplet[0], triplet[2]} {
		if s.schema.NodeType(end) < 0 {
			return fmt.Errorf("%s: relation %s is of node type %s, which %s does not name", where, joinTriplet(triplet), end, declared)
		}
	}
	return nil
}

// typedTables is the layout of several types of nodes in .csv.gz files, which ogbn-mag has.
func (s *Source) typedTables() error {
	if err := s.beginTyped(); err != nil {
		return err
	}
	const counts, list = "raw/num-node-dict.csv.gz", "raw/triplet-type-list.csv.gz"
	names, values, err := s.readNamed(counts)
	if err != nil {
		return err
	}
	order := make([]int, len(names))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(names[a], names[b]) })
	for _, i := range order {
		n, err := strconv.ParseInt(strings.TrimSuffix(values[i], ".0"), 10, 64)
		if err != nil || n < 0 || n > maxCount {
			return fmt.Errorf("%s: line 2: %q is not a count", s.at(counts), lines.Clip([]byte(values[i])))
		}
		s.addType(names[i], n)
	}
	triplets, err := s.readTriplets(list)
	if err != nil {
		return err
	}
	for _, t := range triplets {
		if err := s.checkEnds(t, s.at(list), s.at(counts)); err != nil {
			return err
		}
		if err := s.typedRelation(t); err != nil {
			return err
		}
	}
	for i := range s.schema.NodeTypes {
		if err := s.typedNodes(i, s.at(counts)); err != nil {
			return err
		}
	}
	if err := s.typedLabels(s.at(counts)); err != nil {
		return err
	}
	return s.noteOthers()
}

// beginTyped refuses reverses: a relation and its reverse are not of the same types.
func (s *Source) beginTyped() error {
	s.typed = true
	if s.reverse {
		return fmt.Errorf("%s: reverse edges go with one type of node, and this dataset has several; leave AddReverse at auto or no", s.path)
	}
	return nil
}

func (s *Source) typedRelation(t [3]string) error {
	dir := "raw/relations/" + joinTriplet(t) + "/"
	n, declared, err := s.readCount(dir + "num-edge-list.csv.gz")
	if err != nil {
		return err
	}
	s.addRelation(t[0], t[1], t[2], n, s.table(dir+"edge.csv.gz", n, declared))
	return s.eachFile(dir, ofEdges, func(file, attribute string) error {
		return s.addEdgeData(len(s.edges)-1, file, attribute, func() (section, error) { return s.table(file, n, declared), nil })
	})
}

// eachFile visits the files of a kind in a folder, and notes the others.
func (s *Source) eachFile(dir string, of kind, visit func(file, attribute string) error) error {
	entries, err := s.list(strings.TrimSuffix(dir, "/"))
	if err != nil {
		return err
	}
	for _, e := range entries {
		file := dir + e.Name()
		switch kind, attribute := attributeOf(e.Name()); kind {
		case ofGraph:
		case of:
			if err := visit(file, attribute); err != nil {
				return err
			}
		default:
			s.noteOther(file)
		}
	}
	return nil
}

func (s *Source) typedNodes(i int, declared string) error {
	t := s.schema.NodeTypes[i]
	return s.eachFile("raw/node-feat/"+t.Name+"/", ofNodes, func(file, attribute string) error {
		return s.addNodeData(i, file, attribute, func() (section, error) { return s.table(file, t.Count, declared), nil })
	})
}

// typedLabels takes the labels of the types that have some by raw/nodetype-has-label.csv.gz, or by
// there being a file.
func (s *Source) typedLabels(declared string) error {
	const list = "raw/nodetype-has-label.csv.gz"
	flags, err := s.readFlags(list)
	if err != nil {
		return err
	}
	for i, t := range s.schema.NodeTypes {
		file := "raw/node-label/" + t.Name + "/node-label.csv.gz"
		switch there := s.has(file); {
		case flags[t.Name] && !there:
			return fmt.Errorf("%s: no such file, and %s says that node type %s has labels; fetch both again", s.at(file), s.at(list), t.Name)
		case there && flags != nil && !flags[t.Name]:
			s.note(file, "raw/nodetype-has-label.csv.gz says that the type has none")
		case there:
			err := s.addNodeData(i, file, "label", func() (section, error) { return s.table(file, t.Count, declared), nil })
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// noteOthers names what raw/ holds beyond the typed layout.
func (s *Source) noteOthers() error {
	entries, err := s.list("raw")
	if err != nil {
		return err
	}
	for _, e := range entries {
		switch e.Name() {
		case "num-node-dict.csv.gz", "triplet-type-list.csv.gz", "nodetype-has-label.csv.gz":
		case "relations", "node-feat", "node-label":
			folders, err := s.folders("raw/" + e.Name())
			if err != nil {
				return err
			}
			for _, name := range folders {
				if !s.knows(e.Name(), name) {
					s.note("raw/"+e.Name()+"/"+name, "no such type is declared")
				}
			}
		default:
			s.noteOther("raw/" + e.Name())
		}
	}
	return nil
}

func (s *Source) knows(folder, name string) bool {
	if folder != "relations" {
		return s.schema.NodeType(name) >= 0
	}
	return slices.ContainsFunc(s.schema.Relations, func(r ingest.Relation) bool {
		return joinTriplet([3]string{r.Src, r.Name, r.Dst}) == name
	})
}
