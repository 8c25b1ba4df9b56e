package triples

import (
	"bytes"
	"strings"
)

// resolved returns the IRI that a reference means where base is the base (RFC 3986, section 5.2). A
// reference with a scheme, or without a base, is returned as it is.
func resolved(base string, ref []byte) []byte {
	if base == "" || schemeEnd(string(ref)) > 0 {
		return ref
	}
	base, _, _ = strings.Cut(base, "#")
	authority := schemeEnd(base) // where it begins
	path := authority
	if strings.HasPrefix(base[authority:], "//") {
		if n := strings.IndexAny(base[authority+2:], "/?"); n >= 0 {
			path = authority + 2 + n
		} else {
			path = len(base)
		}
	}
	query := len(base)
	if n := strings.IndexByte(base[path:], '?'); n >= 0 {
		query = path + n
	}
	r := string(ref)
	switch {
	case r == "" || r[0] == '#':
		return []byte(base + r)
	case r[0] == '?':
		return []byte(base[:query] + r)
	case strings.HasPrefix(r, "//"):
		return []byte(base[:authority] + r)
	case r[0] == '/':
		return []byte(base[:path] + withoutDots(r))
	}
	dir := base[path:query]
	dir = dir[:strings.LastIndexByte(dir, '/')+1]
	if dir == "" && path > authority {
		dir = "/"
	}
	return []byte(base[:path] + withoutDots(dir+r))
}

// schemeEnd returns the length of an IRI's scheme with its colon; 0 without one.
func schemeEnd(iri string) int {
	for i := range len(iri) {
		c := iri[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		switch {
		case c == ':' && i > 0:
			return i + 1
		case letter || i > 0 && (c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.'):
		default:
			return 0
		}
	}
	return 0
}

// withoutDots takes the parts . and .. out of a path, and leaves a query or fragment as it is.
func withoutDots(path string) string {
	end := ""
	if n := strings.IndexAny(path, "?#"); n >= 0 {
		path, end = path[:n], path[n:]
	}
	var out []byte
	rooted := strings.HasPrefix(path, "/")
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for i, part := range parts {
		last := i == len(parts)-1
		switch part {
		case "..":
			out = bytes.TrimSuffix(out, []byte("/"))
			out = out[:bytes.LastIndexByte(out, '/')+1]
		case ".":
		default:
			out = append(out, part...)
			if !last {
				out = append(out, '/')
			}
		}
	}
	if rooted {
		return "/" + string(out) + end
	}
	return string(out) + end
}
