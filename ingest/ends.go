package ingest

import (
	"slices"
	"strings"
	"unicode"
)

// endNames are the names of the two ends of edges in headers, as [EndName] writes them: src
// for src_id, from for FromNodeId, start for :START_ID.
var endNames = [][2]string{
	{"src", "dst"}, {"src", "dest"}, {"source", "target"}, {"source", "destination"}, {"source", "dest"}, {"src", "target"},
	{"from", "to"}, {"u", "v"}, {"head", "tail"}, {"start", "end"}, {"id1", "id2"}, {"node1", "node2"}, {"v1", "v2"},
	{"n1", "n2"}, {"user1", "user2"},
	{"subject", "object"}, {"parent", "child"}, {"sender", "receiver"}, {"sender", "recipient"}, {"follower", "followee"},
	{"citing", "cited"}, {"row", "col"},
}

// timeNames are the names of times in headers, as [EndName] writes them.
var timeNames = []string{"time", "timestamp", "ts", "t", "unixtime", "unixts", "seconds", "datetime"}

// notIDs end the names of columns that describe an end of an edge and do not name it: type as in
// src_type, time as in start_time. They are written as EndName writes names.
var notIDs = []string{
	"time", "date", "datetime", "timestamp", "ts", "year", "type", "nodetype", "ntype", "label", "kind", "class", "weight",
	"count", "port", "lat", "lon", "latitude", "longitude", "x", "y", "degree", "age", "score", "size", "text", "description",
	"title", "attr", "feat", "features", "columns",
}

// StreamName is the name of the stream of a list of events, or of arrays of them.
const StreamName = "events"

// EndName writes a header in small letters and digits, without id or node at its end.
func EndName(header string) string {
	if i := strings.IndexByte(header, ':'); i > 0 { // RecBole writes "user_id:token"
		header = header[:i]
	}
	name := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, header)
	for _, end := range []string{"id", "idx", "index", "node", "vertex"} {
		if cut, ok := strings.CutSuffix(name, end); ok && cut != "" {
			name = cut
		}
	}
	return name
}

// IsTimeName reports whether a header names times.
func IsTimeName(header string) bool { return slices.Contains(timeNames, EndName(header)) }

// EdgeEnds finds the first pair of columns that a header calls the ends of edges. pairs is the
// number of such pairs: the columns are sure if it is 1.
func EdgeEnds(header []string) (src, dst, pairs int) {
	columns := map[string][]int{}
	for i, h := range header {
		name := EndName(h)
		columns[name] = append(columns[name], i)
	}
	take := func(a, b string) {
		if n := len(columns[a]) * len(columns[b]); n > 0 {
			if pairs == 0 {
				src, dst = columns[a][0], columns[b][0]
			}
			pairs += n
		}
	}
	for _, pair := range endNames {
		take(pair[0], pair[1])
	}
	if pairs == 0 { // two names with the same end: source_subreddit, target_subreddit
		for _, pair := range endNames {
			for name := range columns {
				rest, ok := strings.CutPrefix(name, pair[0])
				if ok && len(pair[0]) > 2 && rest != "" && !slices.Contains(notIDs, rest) {
					take(name, pair[1]+rest)
				}
			}
		}
	}
	for _, h := range header { // two ids that differ in a number: txId1, txId2
		name := EndName(h)
		if stem, ok := strings.CutSuffix(name, "1"); ok && strings.HasSuffix(stem, "id") && stem != "id" {
			take(name, stem+"2")
		}
	}
	return src, dst, pairs
}
