package browser

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// hostile is the name of a run directory, which would be an element if a page took it for HTML. A
// name has no slash.
const hostile = `<img src=x onerror="document.title=1">&quot;'<script>alert(1)<!--`

// browsers are names of Chromium, in the order in which they are tried.
var browsers = []string{"chromium", "chromium-browser", "google-chrome", "chrome"}

// tab is a page of the browser, with its requests and errors.
type tab struct {
	context.Context
	mu       sync.Mutex
	trouble  []string // messages of the console, exceptions and refused requests
	requests []string
}

// open starts a browser.
func open(t *testing.T) *tab {
	t.Helper()
	path := ""
	for _, name := range browsers {
		if found, err := exec.LookPath(name); err == nil && path == "" {
			path = found
		}
	}
	require.NotEmpty(t, path, "install one of "+strings.Join(browsers, ", "))
	flags := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path),
		chromedp.WSURLReadTimeout(time.Minute))
	if os.Geteuid() == 0 {
		flags = append(flags, chromedp.NoSandbox)
	}
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), flags...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 5*time.Minute)
	t.Cleanup(cancel)
	b := &tab{Context: ctx}
	chromedp.ListenTarget(ctx, func(event any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch e := event.(type) {
		case *runtime.EventConsoleAPICalled:
			b.trouble = append(b.trouble, "console: "+string(e.Type))
		case *runtime.EventExceptionThrown:
			b.trouble = append(b.trouble, "exception: "+e.ExceptionDetails.Error())
		case *log.EventEntryAdded:
			b.trouble = append(b.trouble, "log: "+e.Entry.Text+" "+e.Entry.URL)
		case *network.EventRequestWillBeSent:
			b.requests = append(b.requests, e.Request.URL)
		}
	})
	require.NoError(t, chromedp.Run(ctx, log.Enable(), network.Enable(), runtime.Enable()))
	return b
}

// run runs actions in the tab.
func (b *tab) run(t *testing.T, actions ...chromedp.Action) {
	t.Helper()
	require.NoError(t, chromedp.Run(b, actions...))
}

// eval evaluates JavaScript. The page's policy does not forbid that.
func eval[T any](t *testing.T, b *tab, code string) (v T) {
	t.Helper()
	b.run(t, chromedp.Evaluate(code, &v))
	return v
}

// eventually waits until JavaScript gives true.
func (b *tab) eventually(t *testing.T, code string) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !eval[bool](t, b, code); time.Sleep(100 * time.Millisecond) {
		require.True(t, time.Now().Before(end), "it never is: %s", code)
	}
}

// quiet fails if the page had errors, or sent a request elsewhere than to at.
func (b *tab) quiet(t *testing.T, at string) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Empty(t, b.trouble)
	require.NotEmpty(t, b.requests)
	for _, u := range b.requests {
		require.True(t, u == at || u == "data:,", u)
	}
	b.requests = nil
}

// look sets the colour scheme and the width, and keeps a picture where GNNSTORE_SCREENSHOTS names a
// folder.
func (b *tab) look(t *testing.T, name, scheme string, width int64) {
	t.Helper()
	var picture []byte
	b.run(t, emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
		chromedp.EmulateViewport(width, 900), chromedp.Sleep(100*time.Millisecond))
	if dir := os.Getenv("GNNSTORE_SCREENSHOTS"); dir != "" {
		b.run(t, chromedp.FullScreenshot(&picture, 100))
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%s-%d.png", name, scheme, width)), picture, 0o666))
	}
}

// overlapping returns labels of axes that overlap, and elements that reach beyond the right edge.
const overlapping = `(() => {
	const bad = [];
	for (const axis of document.querySelectorAll(".plot .x, .plot .y")) {
		const shown = [...axis.querySelectorAll("text")].filter(t => getComputedStyle(t).display !== "none");
		const boxes = shown.map(t => [t.textContent, t.getBoundingClientRect()]);
		boxes.forEach(([a, p], i) => boxes.slice(i + 1).forEach(([b, q]) => {
			if (p.left < q.right && q.left < p.right && p.top < q.bottom - 1 && q.top < p.bottom - 1) bad.push(a + " and " + b);
		}));
	}
	const width = document.documentElement.clientWidth;
	if (document.documentElement.scrollWidth > width) bad.push("wider than the window: " + document.documentElement.scrollWidth + " of " + width);
	for (const e of document.querySelectorAll("text, h1, p, dd, figcaption")) {
		const box = e.getBoundingClientRect();
		if (box.width && !e.closest(".scroll") && (box.right > width + 1 || box.left < -1) && !e.closest(".skip")) bad.push(e.textContent.slice(0, 40) + " at " + box.left + " to " + box.right);
	}
	return bad;
})()`

// faint returns texts whose contrast with their background is below 4.5, which WCAG requires.
const faint = `(() => {
	const rgb = c => c.match(/[\d.]+/g).map(Number);
	const linear = v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
	const light = c => rgb(c).slice(0, 3).reduce((s, v, i) => s + linear(v / 255) * [.2126, .7152, .0722][i], 0);
	const behind = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (!(rgb(c)[3] === 0)) return c; } return "rgb(255,255,255)"; };
	const bad = new Set();
	for (const e of document.querySelectorAll("h1, h2, h3, p, dt, dd b, small, th, td, li, .chip, summary, .plot text, .key")) {
		const style = getComputedStyle(e), ink = e.namespaceURI.endsWith("svg") ? style.fill : style.color;
		const [a, b] = [light(ink), light(behind(e))].sort((x, y) => y - x), contrast = (a + .05) / (b + .05);
		if (contrast < 4.5) bad.add(e.tagName + " " + e.className + ": " + contrast.toFixed(2));
	}
	return [...bad];
})()`

// views checks a page in light and dark, on a screen and on a phone.
func (b *tab) views(t *testing.T, name string) {
	t.Helper()
	papers := map[string]bool{}
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{1200, 390} {
			b.look(t, name, scheme, width)
			require.Empty(t, eval[[]string](t, b, overlapping), "%s, %s, %d wide", name, scheme, width)
			require.Empty(t, eval[[]string](t, b, faint), "%s, %s", name, scheme)
		}
		papers[eval[string](t, b, `getComputedStyle(document.body).backgroundColor`)] = true
	}
	require.Len(t, papers, 2, "light and dark differ")
	b.look(t, name, "light", 1200)
}

// keyboard moves through the page by the tab key, and through a chart by the arrow keys.
func (b *tab) keyboard(t *testing.T) {
	t.Helper()
	b.run(t, chromedp.Evaluate(`document.activeElement.blur(); scrollTo(0, 0)`, nil))
	plots := eval[int](t, b, `document.querySelectorAll(".plot").length`)
	require.Positive(t, plots)
	var ids []string
	for range 200 {
		b.run(t, chromedp.KeyEvent(kb.Tab))
		at := eval[string](t, b, `document.activeElement === document.body ? "" : document.activeElement.id || document.activeElement.className`)
		if at == "" || slices.Contains(ids, at) {
			break
		}
		ids = append(ids, at)
		require.Equal(t, "solid", eval[string](t, b, `getComputedStyle(document.activeElement).outlineStyle`), "the focus is not seen on %s", at)
	}
	require.Equal(t, "skip", ids[0])
	seen := 0
	for _, id := range ids {
		if strings.HasSuffix(id, "-plot") {
			seen++
		}
	}
	require.Equal(t, plots, seen, "the tab key reaches each chart: %v", ids)

	const first = `document.querySelector(".plot")`
	b.run(t, chromedp.Evaluate(first+`.focus()`, nil), chromedp.KeyEvent(kb.Home))
	text := eval[string](t, b, first+`.getAttribute("aria-valuetext")`)
	require.Regexp(t, `^[^:]+: \S+ \S+`, text)
	require.Equal(t, "slider", eval[string](t, b, first+`.getAttribute("role")`))
	require.Regexp(t, `^M\d+ 0V1000$`, eval[string](t, b, first+`.querySelector(".cursor").getAttribute("d")`))
	b.run(t, chromedp.KeyEvent(kb.ArrowRight))
	require.NotEqual(t, text, eval[string](t, b, first+`.getAttribute("aria-valuetext")`))
	b.run(t, chromedp.KeyEvent(kb.Escape))
	require.Empty(t, eval[string](t, b, first+`.querySelector(".cursor").getAttribute("d")`))
}

// gnnstore runs the command, which GNNSTORE_BINARY names or the test builds.
func gnnstore(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.Command(binary(t), args...)
	c.Env = append(os.Environ(), "GNNSTORE_DATA=")
	return c
}

var binary = func() func(t *testing.T) string {
	path := os.Getenv("GNNSTORE_BINARY")
	root, _ := filepath.Abs(filepath.Join("..", "..")) // before tests change the directory
	return func(t *testing.T) string {
		t.Helper()
		if path == "" {
			dir, err := os.MkdirTemp("", "gnnstore-browser-")
			require.NoError(t, err)
			path = filepath.Join(dir, "gnnstore")
			build := exec.Command("go", "build", "-o", path, "./cmd/gnnstore")
			build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0")
			out, err := build.CombinedOutput()
			require.NoError(t, err, string(out))
		}
		return path
	}
}()

func must(t *testing.T, args ...string) {
	t.Helper()
	out, err := gnnstore(t, args...).CombinedOutput()
	require.NoError(t, err, string(out))
}

// address matches the address in a server's notes.
var address = regexp.MustCompile(`http://127\.0\.0\.1:\d+/`)

// TestPages looks at the pages of one run, of several runs, of a trace, of a dataset, and of a
// training while it goes on and after it.
func TestPages(t *testing.T) {
	b := open(t)
	t.Chdir(t.TempDir())
	must(t, "generate", "citations", "graph.gnn", "--nodes", "2000", "--classes", "3")
	small := []string{"--fanout", "3,3", "--hidden", "4"}
	must(t, append([]string{"train", "graph.gnn", "--run", "runs/" + hostile, "--epochs", "30"}, small...)...)
	must(t, append([]string{"train", "graph.gnn", "--run", "runs/b", "--epochs", "15", "--seed", "2", "--host-memory", "64KiB"}, small...)...)
	must(t, "stats", "runs/"+hostile, "--html", "one.html")
	must(t, "stats", "runs", "--html", "several.html")
	must(t, "trace", "graph.gnn", "--steps", "8", "--cache", "5%,20%", "--html", "trace.html")
	must(t, "inspect", "graph.gnn", "--html", "inspect.html")
	for _, name := range []string{"one", "several", "trace", "inspect"} {
		t.Run(name, func(t *testing.T) {
			path, err := filepath.Abs(name + ".html")
			require.NoError(t, err)
			at := (&url.URL{Scheme: "file", Path: path}).String()
			b.run(t, chromedp.Navigate(at))
			b.views(t, name)
			b.keyboard(t)
			b.quiet(t, at)
			if name == "one" {
				require.Equal(t, "runs/"+hostile, eval[string](t, b, `document.querySelector("h1").firstChild.textContent.trim()`))
			}
			require.Zero(t, eval[int](t, b, `document.querySelectorAll("img, iframe").length`))
			require.NotEqual(t, "1", eval[string](t, b, `document.title`))
		})
	}

	t.Run("live", func(t *testing.T) {
		train := gnnstore(t, append([]string{"train", "graph.gnn", "--run", "runs/live", "--epochs", "1000000", "--listen", "127.0.0.1:0"}, small...)...)
		notes, err := train.StderrPipe()
		require.NoError(t, err)
		require.NoError(t, train.Start())
		killed := false
		defer func() {
			if !killed {
				_ = train.Process.Kill()
				_ = train.Wait()
			}
		}()
		at := ""
		lines := bufio.NewScanner(notes)
		for at == "" && lines.Scan() {
			at = address.FindString(lines.Text())
		}
		require.NotEmpty(t, at)
		go func() {
			for lines.Scan() {
			}
		}()
		b.run(t, chromedp.Navigate(at))
		b.eventually(t, `document.querySelector(".chip").textContent === "running" && document.querySelectorAll(".plot").length > 3`)
		b.run(t, chromedp.Evaluate(`window.still = true; document.querySelector(".plot").focus()`, nil), chromedp.KeyEvent(kb.Home))
		first := eval[string](t, b, `document.querySelector("footer time").textContent`)
		b.eventually(t, fmt.Sprintf(`document.querySelector("footer time").textContent !== %q`, first))
		require.True(t, eval[bool](t, b, `window.still`), "it brings itself up to date without a new page")
		require.Equal(t, "learning-a-plot", eval[string](t, b, `document.activeElement.id`), "the focus stays")
		require.Regexp(t, `^epoch 1: `, eval[string](t, b, `document.activeElement.getAttribute("aria-valuetext")`), "and what was chosen")
		b.run(t, chromedp.KeyEvent(kb.Escape))
		b.views(t, "live")
		b.quiet(t, at)

		require.NoError(t, train.Process.Signal(os.Interrupt))
		killed = true
		var ended *exec.ExitError
		require.True(t, errors.As(train.Wait(), &ended))
		b.eventually(t, `!document.getElementById("notice").hidden`)
		notice := eval[string](t, b, `document.getElementById("notice").textContent`)
		require.Contains(t, notice, "the training has ended or was stopped")
		b.look(t, "ended", "light", 1200)
		b.mu.Lock()
		b.requests = nil
		b.mu.Unlock()
		b.run(t, chromedp.Sleep(3*time.Second))
		b.mu.Lock()
		defer b.mu.Unlock()
		require.Empty(t, b.requests, "it asks no more")
	})
}
