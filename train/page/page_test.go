package page

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// hostile is a text that would end an attribute, an element or a script, and turn what follows.
const hostile = "\"'><img src=x onerror=alert(1)></script><script>alert(2)</script>\u202e{{.}}\x1b[2J"

// texts parses a page as XML, which the pages also are, and returns its texts and the values of its
// attributes. It fails on an element or an attribute that pages do not have.
func texts(t *testing.T, page []byte) (all []string) {
	t.Helper()
	require.LessOrEqual(t, len(page), MaxBytes)
	code := regexp.MustCompile(`(?s)(<(script|style)>)(.*?)(</(script|style)>)`)
	found := code.FindAllSubmatch(page, -1)
	require.Len(t, found, 2)
	require.Equal(t, style, string(found[0][3]))
	require.Equal(t, script, string(found[1][3]))
	d := xml.NewDecoder(bytes.NewReader(code.ReplaceAll(page, []byte("$1$4"))))
	ids := map[string]bool{}
	for {
		token, err := d.Token()
		if err == io.EOF {
			return all
		}
		require.NoError(t, err)
		switch token := token.(type) {
		case xml.CharData:
			all = append(all, string(token))
		case xml.StartElement:
			require.NotContains(t, []string{"img", "iframe", "object", "form", "input", "a-b"}, token.Name.Local)
			for _, a := range token.Attr {
				require.False(t, strings.HasPrefix(a.Name.Local, "on"), a.Name.Local)
				require.NotEqual(t, "style", a.Name.Local, "the policy refuses it")
				if a.Name.Local == "href" {
					require.Contains(t, []string{"data:,", "#content"}, a.Value)
				}
				if a.Name.Local == "id" {
					require.False(t, ids[a.Value], "two elements are called %s", a.Value)
					ids[a.Value] = true
				}
				all = append(all, a.Value)
			}
		}
	}
}

// hostileDocument has the text in every place.
func hostileDocument(text string) *Document {
	share := math.NaN()
	c := Chart{Title: text, Note: text, X: Axis{Name: text, Unit: Integer}, Y: Axis{Name: text}, Series: []Series{
		{Name: text, X: []float64{1, 2, 3, math.Inf(1)}, Y: []float64{math.NaN(), 1e308, -1e308, 4}},
		{Name: text, X: []float64{2}, Y: []float64{math.Inf(-1)}},
	}}
	return &Document{
		Kind: text, Title: text, Status: text, Lead: text, Poll: time.Second, Facts: []Fact{{text, text, text}},
		Sections: []Section{{
			Name: "some", Title: text, Text: text, Points: []string{text}, Charts: []Chart{c, {Title: text, Empty: text}},
			Tables: []Table{
				{Title: text, Note: text, Folded: true, Head: Columns(text, "#"+text), Rows: [][]Cell{
					{{Text: text, Series: 99}, {Text: text, Bar: &share}, {Text: text}},
				}},
				{Head: Columns(text), Rows: [][]Cell{Cells(text)}},
			},
		}},
	}
}

// TestHostile: whatever a text says, it is shown as text.
func TestHostile(t *testing.T) {
	page, err := hostileDocument(hostile).Page()
	require.NoError(t, err)
	all := strings.Join(texts(t, page), "\n")
	want := "\"'><img src=x onerror=alert(1)></script><script>alert(2)</script>?{{.}}?[2J"
	require.Equal(t, 25, strings.Count(all, want), all)
	require.NotContains(t, string(page), "<img")
	require.NotContains(t, string(page), "\u202e")

	rapid.Check(t, func(r *rapid.T) {
		page, err := hostileDocument(rapid.String().Draw(r, "text")).Page()
		require.NoError(r, err)
		require.True(r, bytes.HasSuffix(page, []byte("</html>\n")))
		require.Equal(r, 1, bytes.Count(page, []byte("<script>")))
	})
}

// TestPolicy: the policy permits the code of the page, and nothing else.
func TestPolicy(t *testing.T) {
	for _, served := range []bool{false, true} {
		p := policy(served)
		require.True(t, strings.HasPrefix(p, "default-src 'none'; "))
		require.NotContains(t, p, "unsafe")
		require.Equal(t, served, strings.Contains(p, "connect-src 'self'"))
		require.NotContains(t, p, "frame-ancestors", "a meta element cannot have it")
		for _, code := range []string{style, script} {
			sum := sha256.Sum256([]byte(code))
			require.Contains(t, p, "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'")
		}
	}
	require.Equal(t, policy(true)+"; frame-ancestors 'none'", Policy())
	d := Document{Title: "a"}
	page, err := d.Page()
	require.NoError(t, err)
	require.Contains(t, texts(t, page), policy(false), "a file has it as well")
	require.NotContains(t, string(page), "data-poll=")
}

// TestSize: a page stays below its size, however much there is to show.
func TestSize(t *testing.T) {
	const epochs = 100_000
	long := strings.Repeat("a very long name, ", 20_000)
	s := Section{Name: "curves", Title: long}
	for range 2 {
		c := Chart{Title: long, X: Axis{Name: "epoch", Unit: Integer}}
		for i := range 8 {
			line := Series{Name: fmt.Sprint(i, long)}
			for e := range epochs {
				line.X, line.Y = append(line.X, float64(e)), append(line.Y, math.Sin(float64(e*i)))
			}
			c.Series = append(c.Series, line)
		}
		s.Charts = append(s.Charts, c)
	}
	for range 4 {
		table := Table{Title: long, Head: Columns("a", "#b")}
		for i := range 10_000 {
			table.Rows = append(table.Rows, Cells(long, fmt.Sprint(i)))
		}
		s.Tables = append(s.Tables, table)
	}
	d := Document{Title: long, Sections: []Section{s}}
	page, err := d.Page()
	require.NoError(t, err)
	all := strings.Join(texts(t, page), "\n")
	require.Contains(t, all, "Of 100,000 points ")
	require.Contains(t, all, "more rows are left out.")
}

// TestThin: the lowest and the highest values of each series stay.
func TestThin(t *testing.T) {
	c := Chart{X: Axis{Unit: Integer}, Series: []Series{{Name: "a"}, {Name: "b"}}}
	for i := range 100_000 {
		for s := range c.Series {
			c.Series[s].X, c.Series[s].Y = append(c.Series[s].X, float64(i)), append(c.Series[s].Y, 1)
		}
	}
	c.Series[0].Y[777], c.Series[1].Y[77_777], c.Series[1].Y[5] = 9, -9, math.NaN()
	thin := c.table().thin(200)
	require.LessOrEqual(t, len(thin.x), 202)
	low, high, _ := bounds(thin.y...)
	require.Equal(t, []float64{-9, 9}, []float64{low, high})
	require.Equal(t, []float64{0, 99_999}, []float64{thin.x[0], thin.x[len(thin.x)-1]})
	d := c.draw("a", 200)
	require.Contains(t, d.Summary, "b: from 1 to 1, lowest -9 at 77,777")
	require.Contains(t, d.Note, "Of 100,000 points")
}

// TestDraw: what a chart of a few numbers has.
func TestDraw(t *testing.T) {
	c := Chart{
		Title: "Loss", X: Axis{Name: "epoch", Unit: Integer}, Y: Axis{Unit: Share, Zero: true},
		Series: []Series{{Name: "a", X: []float64{1, 2, 3}, Y: []float64{0, 0.5, 1}}, {Name: "b", X: []float64{2}, Y: []float64{0.25}}, {Name: "none"}},
	}
	d := c.draw("x", 100)
	require.Equal(t, []mark{{"0%", "1", false}, {"50%", "2", false}, {"100%", "3", false}}, d.XTicks)
	require.Equal(t, mark{"100%", "0 %", false}, d.YTicks[0])
	require.Equal(t, mark{"0%", "100 %", false}, d.YTicks[5])
	require.Len(t, d.Lines, 2, "a series without numbers has no line")
	require.Equal(t, "M0 1000L500 500L1000 0", d.Lines[0].Path)
	require.Equal(t, "0.00 %|50.00 %|100.00 %", d.Lines[0].Texts)
	require.Equal(t, "|25.00 %|", d.Lines[1].Texts)
	require.Equal(t, "Loss over epoch. a: from 0.00 % to 100.00 %, lowest 0.00 % at 1, highest 100.00 % at 3; "+
		"b: from 25.00 % to 25.00 %, lowest 25.00 % at 2, highest 25.00 % at 2", d.Summary)

	c.Form, c.Series = Stack, []Series{{Name: "a", X: []float64{1, 2}, Y: []float64{0.5, 0.5}}, {Name: "b", X: []float64{1, 2}, Y: []float64{0.5, 0.5}}}
	d = c.draw("x", 100)
	require.Equal(t, "M0 0L1000 0L1000 500L0 500Z", d.Lines[1].Path)
	c.Form, c.Series = Histogram, []Series{{Name: "a", X: []float64{1, 2}, Y: []float64{1, 0.5}}}
	require.Equal(t, "M50 1000V0H450V1000ZM550 1000V500H950V1000Z", c.draw("x", 100).Lines[0].Path)
	require.Equal(t, "There are no numbers yet.", (&Chart{Series: []Series{{Name: "a", X: []float64{1}}}}).draw("x", 9).Empty)
}

// TestScale: an axis of any numbers has some ticks, in order, within it, and none twice.
func TestScale(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		number := rapid.Float64Range(-largest, largest)
		a, b := number.Draw(r, "a"), number.Draw(r, "b")
		if rapid.Bool().Draw(r, "near") {
			a, b = math.Mod(a, 1000), math.Mod(b, 1000)
		}
		axis := Axis{
			Unit: Unit(rapid.IntRange(0, int(Seconds)).Draw(r, "unit")), Log: rapid.Bool().Draw(r, "log"),
			Zero: rapid.Bool().Draw(r, "zero"), Full: rapid.Bool().Draw(r, "full"),
		}
		if axis.Log {
			a, b = max(math.Abs(a), 1e-300), max(math.Abs(b), 1e-300)
		}
		s := axis.fit(min(a, b), max(a, b), 5, rapid.Bool().Draw(r, "widen"))
		require.LessOrEqual(r, len(s.ticks), 12)
		require.LessOrEqual(r, s.low, min(a, b))
		require.GreaterOrEqual(r, s.high, max(a, b))
		for i, t := range s.ticks {
			require.True(r, t.at > -1e-6 && t.at < 1+1e-6, "%v", s.ticks)
			require.True(r, i == 0 || t.at > s.ticks[i-1].at, "%v", s.ticks)
			require.NotContains(r, t.text, "NaN")
		}
	})
	for _, c := range []struct {
		axis      Axis
		low, high float64
		want      string
	}{
		{Axis{}, 0.17, 2.4, "0.0 0.5 1.0 1.5 2.0 2.5"},
		{Axis{Unit: Share}, 0.61, 0.88, "60 % 70 % 80 % 90 %"},
		{Axis{Unit: Bytes, Zero: true}, 100 << 20, 130 << 20, "0 B 50 MiB 100 MiB 150 MiB"},
		{Axis{Unit: Seconds, Zero: true}, 0.01, 0.09, "0 s 20 ms 40 ms 60 ms 80 ms 100 ms"},
		{Axis{Unit: Integer}, 1, 2, "1 2"},
		{Axis{Unit: Integer}, 0, 100_000, "0 20 k 40 k 60 k 80 k 100 k"},
		{Axis{Log: true}, 0.02, 30, "0.01 0.1 1 10 100"},
		{Axis{Unit: Share}, 1, 1, "90 % 95 % 100 %"},
		{Axis{}, 3, 3, "2.6 2.8 3.0 3.2 3.4"},
	} {
		var got []string
		for _, t := range c.axis.fit(c.low, c.high, 5, true).ticks {
			got = append(got, t.text)
		}
		require.Equal(t, c.want, strings.Join(got, " "))
	}
}
