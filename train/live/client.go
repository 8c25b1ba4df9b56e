package live

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gnnstore/gnnstore/train/run"
)

// ErrNotServed is returned if nobody answers for a run: it has ended, or cannot be asked.
var ErrNotServed = errors.New("no training answers")

// maxResult bounds a result: 100,000 epochs take some 30 MB.
const maxResult = 64 << 20

// Client asks a Server. Its methods are safe for concurrent use.
type Client struct {
	http http.Client
	base string
	whom string // in errors
}

// OfRun asks the training in a run directory, on this machine. Where there is none, the error is
// ErrNotServed.
func OfRun(run string) (*Client, error) {
	path, err := socketOf(run)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", run, ErrNotServed)
	}
	return newClient("http://run", "run "+run, func(ctx context.Context, d *net.Dialer, _ string) (net.Conn, error) {
		return d.DialContext(ctx, "unix", path)
	}), nil
}

// At asks the training that serves HTTP at HOST:PORT, as Options.Listen of its Server has it. No
// host is this machine.
func At(addr string) (*Client, error) {
	given := strings.TrimSuffix(strings.TrimPrefix(addr, "http://"), "/")
	hostPort, err := ParseListen(given)
	if err != nil {
		return nil, err
	}
	return newClient("http://"+hostPort, hostPort, func(ctx context.Context, d *net.Dialer, at string) (net.Conn, error) {
		return d.DialContext(ctx, "tcp", at)
	}), nil
}

func newClient(base, whom string, dial func(context.Context, *net.Dialer, string) (net.Conn, error)) *Client {
	return &Client{base: base, whom: whom, http: http.Client{
		// No proxy: requests go to this machine, or to one that the user named.
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, at string) (net.Conn, error) {
				return dial(ctx, &net.Dialer{Timeout: 3 * time.Second}, at)
			},
			ResponseHeaderTimeout: 5 * time.Second, DisableKeepAlives: true, DisableCompression: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Stats returns the result so far.
func (c *Client) Stats(ctx context.Context) (*run.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	body, err := c.get(ctx, "/stats")
	if err != nil {
		return nil, err
	}
	defer body.Close()
	b, err := io.ReadAll(io.LimitReader(body, maxResult))
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", c.whom, ErrNotServed, err)
	}
	return c.decode(b)
}

// Watch calls show with the result so far, at once and then at an interval, and at last with how
// the run ended, which has no Live. It returns the error of show or of ctx; ErrNotServed where the
// end was not told, since the process died.
func (c *Client) Watch(ctx context.Context, every time.Duration, show func(*run.Result) error) error {
	body, err := c.get(ctx, "/watch?every="+url.QueryEscape(every.String()))
	if err != nil {
		return err
	}
	defer body.Close()
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxResult)
	for lines.Scan() {
		r, err := c.decode(lines.Bytes())
		if err != nil {
			return err
		}
		if err := show(r); err != nil || r.Live == nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errors.Join(fmt.Errorf("%s: %w any more", c.whom, ErrNotServed), lines.Err())
}

func (c *Client) get(ctx context.Context, path string) (io.ReadCloser, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.whom, err)
	}
	a, err := c.http.Do(q)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		// Without the URL, which the user never gave.
		return nil, fmt.Errorf("%s: %w: %w", c.whom, ErrNotServed, errors.Unwrap(err))
	}
	if a.StatusCode == http.StatusServiceUnavailable { // a training that has enough to answer
		why, _ := io.ReadAll(io.LimitReader(a.Body, 200))
		a.Body.Close()
		return nil, fmt.Errorf("%s: %w: %s", c.whom, ErrNotServed, strings.TrimSpace(string(why)))
	}
	if a.StatusCode != http.StatusOK {
		a.Body.Close()
		return nil, fmt.Errorf("%s: it answers %q, and is no training of gnnstore, or does not serve this machine",
			c.whom, a.Status)
	}
	return a.Body, nil
}

func (c *Client) decode(b []byte) (*run.Result, error) {
	r := new(run.Result)
	err := json.Unmarshal(b, r)
	if err == nil && r.Status == "" {
		err = errors.New("there is no status in it")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: what it answers is no result of gnnstore: %w", c.whom, err)
	}
	return r, nil
}
