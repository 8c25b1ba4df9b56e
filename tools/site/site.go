package main

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"net/url"
	"path"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

//go:embed layout.html style.css
var assets embed.FS

var layout = template.Must(template.ParseFS(assets, "layout.html"))

var markdown = goldmark.New(
	goldmark.WithExtensions(extension.Table),
	goldmark.WithParserOptions(parser.WithAutoHeadingID()),
)

// repository is the address of the source tree. Links to files that have no page lead there.
const repository = "https://github.com/gnnstore/gnnstore/blob/main/"

// sections are the parts of a site, in the order of its contents.
var sections = []struct{ title, pattern, folder string }{
	{"Start", "README.md", ""},
	{"Tutorials", "cmd/gnnstore/topics/tutorial*.md", "topics"},
	{"Topics", "cmd/gnnstore/topics/*.md", "topics"},
	{"Reference", "store/FORMAT.md", "reference"},
	{"Reference", ".github/CHANGELOG.md", "reference"},
	{"Reference", ".github/CONTRIBUTING.md", "reference"},
	{"Reference", "tools/python/README.md", "reference/python"},
	{"Measured", "tools/results/*.md", "measured"},
	{"Commands", helpFolder + "*.md", "commands"},
}

// helpFolder begins the names of the help files, which the program writes. They are not in the
// tree.
const helpFolder = "help/"

// page is a file of Markdown, and the page that it becomes.
type page struct {
	file    string // its path in the source tree, or below helpFolder
	Name    string // its path in the site: topics/memory.html
	Section string
	Title   string
	text    []byte
	doc     ast.Node
	anchors map[string]bool // the ids of its headings
}

// site is a source tree with the pages that are made of it.
type site struct {
	tree   fs.FS
	pages  []*page
	byFile map[string]*page
}

// gather reads the pages of a source tree, and of the help of commands.
func gather(tree, help fs.FS) (*site, error) {
	s := &site{tree: tree, byFile: map[string]*page{}}
	for _, section := range sections {
		from, prefix := tree, ""
		pattern, ofHelp := strings.CutPrefix(section.pattern, helpFolder)
		if ofHelp {
			from, prefix = help, helpFolder
		}
		files, err := fs.Glob(from, pattern)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			if s.byFile[prefix+file] != nil {
				continue // an earlier section has it
			}
			text, err := fs.ReadFile(from, file)
			if err != nil {
				return nil, err
			}
			s.add(&page{file: prefix + file, Section: section.title, text: text}, section.folder)
		}
	}
	if s.byFile["README.md"] == nil {
		return nil, fmt.Errorf("README.md: not there; is this the source tree of gnnstore?")
	}
	return s, nil
}

// add parses a page and gives it a name below folder. The README is the first page.
func (s *site) add(p *page, folder string) {
	base := strings.TrimSuffix(path.Base(p.file), ".md")
	switch {
	case p.file == "README.md", base == "README":
		base = "index"
	default:
		base = strings.ToLower(base)
	}
	p.Name = path.Join(folder, base+".html")
	p.doc = markdown.Parser().Parse(text.NewReader(p.text))
	p.anchors = map[string]bool{}
	for _, n := range nodes(p.doc) {
		heading, ok := n.(*ast.Heading)
		if !ok {
			continue
		}
		if id, ok := heading.AttributeString("id"); ok {
			p.anchors[string(id.([]byte))] = true
		}
		if p.Title == "" {
			p.Title = plain(heading, p.text)
		}
	}
	p.Title = cmp.Or(p.Title, base)
	s.pages = append(s.pages, p)
	s.byFile[p.file] = p
}

// files returns the contents of each file of the site by its name.
func (s *site) files() (map[string][]byte, error) {
	style, err := assets.ReadFile("style.css")
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{"style.css": style}
	for _, p := range s.pages {
		if err := s.resolve(p, files); err != nil {
			return nil, fmt.Errorf("%s: %w", p.file, err)
		}
		if files[p.Name], err = s.render(p); err != nil {
			return nil, fmt.Errorf("%s: %w", p.file, err)
		}
	}
	return files, nil
}

// resolve points the links and pictures of a page to places in the site, and adds the pictures to
// files. A link to a file without a page leads to the repository.
func (s *site) resolve(p *page, files map[string][]byte) error {
	for _, n := range nodes(p.doc) {
		switch n := n.(type) {
		case *ast.Link:
			to, err := s.target(p, string(n.Destination))
			if err != nil {
				return err
			}
			n.Destination = []byte(to)
		case *ast.Image:
			file := path.Join(path.Dir(p.file), string(n.Destination))
			picture, err := fs.ReadFile(s.tree, file)
			if err != nil {
				return fmt.Errorf("a picture is missing: %w", err)
			}
			name := path.Join("pictures", path.Base(file))
			if before, ok := files[name]; ok && !bytes.Equal(before, picture) {
				return fmt.Errorf("%s: another picture has this name", file)
			}
			files[name] = picture
			n.Destination = []byte(relative(p.Name, name))
		}
	}
	return nil
}

// target returns the link to write in the page of p for a link in its file.
func (s *site) target(p *page, link string) (string, error) {
	u, err := url.Parse(link)
	if err != nil {
		return "", err
	}
	switch {
	case u.Scheme == "https" || u.Scheme == "http":
		return link, nil
	case u.Scheme != "" || u.Host != "" || strings.HasPrefix(u.Path, "/"):
		return "", fmt.Errorf("link %q: only https, http and paths in the source tree are known", link)
	}
	file := p.file
	if u.Path != "" {
		file = path.Join(path.Dir(p.file), u.Path)
	}
	to := s.byFile[file]
	if to == nil {
		if _, err := fs.Stat(s.tree, file); err != nil {
			return "", fmt.Errorf("link %q: %s is not in the source tree", link, file)
		}
		return repository + file, nil
	}
	if u.Fragment != "" && !to.anchors[u.Fragment] {
		return "", fmt.Errorf("link %q: %s has no heading of this name", link, file)
	}
	place := ""
	if to != p {
		place = relative(p.Name, to.Name)
	}
	if u.Fragment != "" {
		place += "#" + u.Fragment
	}
	return cmp.Or(place, "#"), nil
}

// render writes the HTML of a page, with the contents of the site beside it.
func (s *site) render(p *page) ([]byte, error) {
	var body, out bytes.Buffer
	if err := markdown.Renderer().Render(&body, p.text, p.doc); err != nil {
		return nil, err
	}
	type entry struct {
		Title, Link string
		Here        bool
	}
	type part struct {
		Title   string
		Entries []entry
	}
	var contents []part
	for _, other := range s.pages {
		if len(contents) == 0 || contents[len(contents)-1].Title != other.Section {
			contents = append(contents, part{Title: other.Section})
		}
		title, _, _ := strings.Cut(other.Title, ":")
		at := &contents[len(contents)-1]
		at.Entries = append(at.Entries, entry{title, relative(p.Name, other.Name), other == p})
	}
	err := layout.Execute(&out, map[string]any{
		"Title": p.Title, "Style": relative(p.Name, "style.css"), "Home": relative(p.Name, "index.html"),
		"Contents": contents, "Section": p.Section, "Body": template.HTML(body.String()),
	})
	return out.Bytes(), err
}

// relative returns the relative path from one file of the site to another.
func relative(from, to string) string {
	up := strings.Repeat("../", strings.Count(from, "/"))
	return up + to
}

// nodes returns a document's nodes, parents first.
func nodes(doc ast.Node) (all []ast.Node) {
	// The walk cannot fail, since the function that it calls never does.
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			all = append(all, n)
		}
		return ast.WalkContinue, nil
	})
	return all
}

// plain returns the text of a heading without Markdown.
func plain(n ast.Node, text []byte) string {
	var b strings.Builder
	for _, n := range nodes(n) {
		if t, ok := n.(*ast.Text); ok {
			b.Write(t.Value(text))
		}
	}
	return b.String()
}
