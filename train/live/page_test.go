package live_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gnnstore/gnnstore/train/live"
	"github.com/gnnstore/gnnstore/train/page"
	"github.com/gnnstore/gnnstore/train/run"
)

// fetch asks a server for a path, with the tag of an earlier answer or none.
func fetch(ctx context.Context, s *live.Server, path, tag string) (*http.Response, string, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Addr().String()+path, nil)
	if err != nil {
		return nil, "", err
	}
	q.Close = true
	q.Header.Set("If-None-Match", tag)
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		return nil, "", err
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	return a, string(b), err
}

// TestPage: the page of a training asks for its next state until the training has ended, and a
// browser that has a page does not get it again.
func TestPage(t *testing.T) {
	trains := new(training)
	s := serve(t, t.TempDir(), trains)
	a, body, err := fetch(t.Context(), s, "/", "")
	require.NoError(t, err)
	require.Equal(t, 200, a.StatusCode)
	require.Equal(t, page.Policy(), a.Header.Get("Content-Security-Policy"))
	require.Equal(t, "text/html; charset=utf-8", a.Header.Get("Content-Type"))
	require.Equal(t, "no-store", a.Header.Get("Cache-Control"))
	require.Contains(t, body[:60], `data-poll="2000"`)
	require.LessOrEqual(t, len(body), page.MaxBytes)

	// A page may be asked for in the same twentieth of a second, or be a new one.
	a, again, err := fetch(t.Context(), s, "/", a.Header.Get("ETag"))
	require.NoError(t, err)
	if a.StatusCode == http.StatusNotModified {
		require.Empty(t, again)
	} else {
		require.True(t, strings.HasPrefix(again, "<!DOCTYPE html>"))
	}

	trains.ended.Store(true)
	require.Eventually(t, func() bool {
		_, body, err := fetch(t.Context(), s, "/", "")
		return err == nil && strings.Contains(body, ">done</span>") && !strings.Contains(body[:60], "data-poll")
	}, time.Minute, 20*time.Millisecond)
}

// TestHundredBrowsers: each of a hundred browsers that ask at once gets the page, most of them when
// they ask again.
func TestHundredBrowsers(t *testing.T) {
	s := serve(t, t.TempDir(), new(training))
	g, ctx := errgroup.WithContext(t.Context())
	var refused atomic.Int64
	for range 100 {
		g.Go(func() error {
			for {
				a, body, err := fetch(ctx, s, "/", "")
				switch {
				case ctx.Err() != nil:
					return ctx.Err()
				case err != nil: // its place was given to another
					refused.Add(1)
				case a.StatusCode == 200 && strings.HasSuffix(body, "</html>\n"):
					return nil
				default:
					refused.Add(1)
					if a.Header.Get("Refresh") == "" {
						return errors.New(a.Status + ": " + body)
					}
				}
				time.Sleep(50 * time.Millisecond)
			}
		})
	}
	require.NoError(t, g.Wait())
	t.Logf("%d were refused, and asked again", refused.Load())
}

// TestServeRuns: several runs have a page, and a list of results, and no metrics.
func TestServeRuns(t *testing.T) {
	runs := []*run.Result{{Run: "a", Status: run.Running}, {Run: "b", Status: run.Done}}
	var notes []string
	s := live.ServeRuns(endpoint(t, "127.0.0.1:0"), func(n string) { notes = append(notes, n) }, func() []*run.Result { return runs })
	defer s.Close()
	require.Equal(t, []string{"statistics at http://" + s.Addr().String() + "/, /stats, /watch and /healthz"}, notes)
	_, body, err := fetch(t.Context(), s, "/", "")
	require.NoError(t, err)
	require.Contains(t, body, "<h1>2 runs ")
	require.Contains(t, body[:60], `data-poll="2000"`)
	_, body, err = fetch(t.Context(), s, "/stats", "")
	require.NoError(t, err)
	var got []*run.Result
	require.NoError(t, json.Unmarshal([]byte(body), &got))
	require.Len(t, got, 2)
	a, body, err := fetch(t.Context(), s, "/metrics", "")
	require.NoError(t, err)
	require.Equal(t, 404, a.StatusCode)
	require.Equal(t, "there are /, /stats, /watch and /healthz\n", body)
}
