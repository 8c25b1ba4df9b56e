package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A packageMap is the map of README.md: the directories that it names, and who may import whom. The
// arrows inside a room may also stand in the comment of its doc.go; see addInside.
//
// A room is a directory at the top with all below it. An arrow between rooms holds for every
// package of the room on its left. "inside train: model -> tape, kernels" says all that train/model
// imports of ours; a package of train without such an arrow imports what train may, and nothing of
// train. A room without an "inside" line is free inside.
type packageMap struct {
	places []string                       // directories, in the order of the map
	arrows map[string][]string            // room to rooms
	inside map[string]map[string][]string // room to package to siblings, rooms or allOfThem
}

// The words of an arrow that are no names.
const (
	nothing       = "nothing"         // on the left: no arrow may arrive there
	nothingOfOurs = "nothing of ours" // on the right: no arrow leaves here
	anythingBut   = "anything but "   // on the right: every room but those that follow
	allOfThem     = "all of them"     // on the right, inside a room: every package of it, and what the room may import
)

// columnGap stands between a name and its phrase, and between two arrows on one line.
var columnGap = regexp.MustCompile(` {2,}`)

// parseMap reads the first fenced block below the heading "Map".
func parseMap(readme string) (*packageMap, error) {
	block, err := mapBlock(readme)
	if err != nil {
		return nil, err
	}
	m := &packageMap{arrows: map[string][]string{}, inside: map[string]map[string][]string{}}
	var top string // the last directory that was not indented
	var arrows []string
	for _, line := range block {
		switch {
		case strings.TrimSpace(line) == "":
		case strings.Contains(line, "->"):
			arrows = append(arrows, strings.TrimSpace(line))
		case strings.HasPrefix(line, " "):
			_, err = m.addPlaces(top+"/", line)
		default:
			top, err = m.addPlaces("", line)
		}
		if err != nil {
			return nil, fmt.Errorf("README.md: map: %w", err)
		}
	}
	if err := m.addArrows(arrows); err != nil {
		return nil, fmt.Errorf("README.md: map: %w", err)
	}
	return m, nil
}

// addInside reads the arrows in the comment of a room's doc.go. They stand in lines of code, such
// as
//
//	model -> tape, sample; tape -> kernels
func (m *packageMap) addInside(room, doc string) error {
	var lines []string
	for line := range strings.Lines(doc) {
		if code, ok := strings.CutPrefix(line, "//\t"); ok && strings.Contains(code, "->") {
			lines = append(lines, "inside "+room+": "+strings.TrimSpace(code))
		}
	}
	if err := m.addArrows(lines); err != nil {
		return fmt.Errorf("%s/doc.go: map: %w", room, err)
	}
	return nil
}

func mapBlock(readme string) ([]string, error) {
	var block []string
	var underHeading, fenced bool
	for line := range strings.Lines(readme) {
		line = strings.TrimRight(line, " \r\n")
		fence := strings.HasPrefix(line, "```")
		switch {
		case fence && fenced && underHeading:
			return block, nil
		case fence:
			fenced = !fenced
		case fenced && underHeading:
			block = append(block, line)
		case !fenced && strings.HasPrefix(line, "#"):
			underHeading = strings.EqualFold(strings.TrimSpace(strings.TrimLeft(line, "#")), "map")
		}
	}
	return nil, errors.New(`README.md: no fenced block under a heading "Map"`)
}

// addPlaces reads "store/ phrase" or " tape, model phrase", and returns the last directory that it
// names.
func (m *packageMap) addPlaces(below, line string) (last string, err error) {
	columns := columnGap.Split(strings.TrimSpace(line), 2)
	if len(columns) != 2 {
		return "", fmt.Errorf("%q: want a name, two spaces or more, a phrase", line)
	}
	for name := range strings.SplitSeq(columns[0], ",") {
		last = below + strings.Trim(strings.TrimSpace(name), "/")
		if slices.Contains(m.places, last) {
			return "", fmt.Errorf("%s stands there twice", last)
		}
		m.places = append(m.places, last)
	}
	return last, nil
}

// addArrows reads lines like "a, b -> c c -> d" and "inside a: e -> f; g -> h". It wants all places
// known.
func (m *packageMap) addArrows(lines []string) error {
	var targetsOfNone []string
	for _, line := range lines {
		room := ""
		if rest, ok := strings.CutPrefix(line, "inside "); ok {
			room, line, _ = strings.Cut(rest, ":")
			if !slices.Contains(m.rooms(), room) {
				return fmt.Errorf("inside %s: no such directory in the map", room)
			}
			if m.inside[room] == nil {
				m.inside[room] = map[string][]string{}
			}
		}
		for item := range strings.SplitSeq(columnGap.ReplaceAllString(strings.TrimSpace(line), ";"), ";") {
			left, right, ok := strings.Cut(item, "->")
			if !ok {
				return fmt.Errorf("%q: want an arrow", item)
			}
			to, err := m.targets(room, strings.TrimSpace(right))
			if err != nil {
				return err
			}
			if strings.TrimSpace(left) == nothing {
				targetsOfNone = append(targetsOfNone, to...)
				continue
			}
			for _, from := range splitNames(left) {
				switch {
				case room == "" && slices.Contains(m.rooms(), from):
					m.arrows[from] = append(m.arrows[from], without(to, from)...)
				case room != "" && (from == room || slices.Contains(m.siblings(room), from)):
					m.inside[room][from] = append(m.inside[room][from], to...)
				default:
					return fmt.Errorf("an arrow leaves %s, which is no directory in the map", from)
				}
			}
		}
	}
	for from, to := range m.arrows {
		for _, target := range targetsOfNone {
			if slices.Contains(to, target) {
				return fmt.Errorf("%s -> %s is drawn, and so is %s -> %s", from, target, nothing, target)
			}
		}
	}
	return nil
}

// targets reads the right side of an arrow between rooms or, when room is not empty, inside that
// room.
func (m *packageMap) targets(room, right string) ([]string, error) {
	if right == nothingOfOurs {
		return nil, nil
	}
	if right == allOfThem && room != "" {
		return []string{allOfThem}, nil
	}
	rest, all := strings.CutPrefix(right, anythingBut)
	names := splitNames(rest)
	for _, name := range names {
		if !slices.Contains(m.rooms(), name) && !slices.Contains(m.siblings(room), name) {
			return nil, fmt.Errorf("an arrow points to %s, which is no directory in the map", name)
		}
	}
	if all {
		return without(m.rooms(), names...), nil
	}
	return names, nil
}

// rooms lists the directories at the top.
func (m *packageMap) rooms() []string {
	var rooms []string
	for _, place := range m.places {
		if room := roomOf(place); !slices.Contains(rooms, room) {
			rooms = append(rooms, room)
		}
	}
	return rooms
}

// siblings lists the directories right below room, by their last name.
func (m *packageMap) siblings(room string) []string {
	var siblings []string
	for _, place := range m.places {
		if name := nameInside(place); room != "" && roomOf(place) == room && name != room && !slices.Contains(siblings, name) {
			siblings = append(siblings, name)
		}
	}
	return siblings
}

func (m *packageMap) arrowCount() int {
	n := 0
	for _, to := range m.arrows {
		n += len(to)
	}
	for room, arrows := range m.inside {
		for _, to := range arrows {
			n += len(to)
			if slices.Contains(to, allOfThem) {
				n += len(m.siblings(room)) - 1
			}
		}
	}
	return n
}

// draws reports whether package from may import package to, both directories below the root.
func (m *packageMap) draws(from, to string) bool {
	room, other := roomOf(from), roomOf(to)
	name, otherName := nameInside(from), nameInside(to)
	inside, strict := m.inside[room]
	drawn, own := inside[name]
	if room == other {
		return !strict || name == otherName || slices.Contains(drawn, otherName) || slices.Contains(drawn, allOfThem)
	}
	if own && !slices.Contains(drawn, allOfThem) {
		return slices.Contains(drawn, other)
	}
	return slices.Contains(m.arrows[room], other)
}

// roomOf returns "train" for train/model.
func roomOf(dir string) string {
	room, _, _ := strings.Cut(dir, "/")
	return room
}

// nameInside returns "model" for train/model and what is below it, and "train" for train.
func nameInside(dir string) string {
	parts := strings.Split(dir, "/")
	return parts[min(1, len(parts)-1)]
}

func splitNames(list string) []string {
	names := strings.Split(list, ",")
	for i, name := range names {
		names[i] = strings.TrimSpace(name)
	}
	return names
}

func without(names []string, gone ...string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(gone, name) })
}
