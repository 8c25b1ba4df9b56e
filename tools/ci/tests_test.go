package main

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCountTests(t *testing.T) {
	const (
		pass    = `{"Action":"run","Package":"p","Test":"TestA"}` + "\n" + `{"Action":"pass","Package":"p","Test":"TestA"}` + "\n"
		noGPU   = `{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:5: no GPU here\n"}` + "\n" + `{"Action":"skip","Package":"p","Test":"TestB"}` + "\n"
		data    = `{"Action":"output","Package":"p","Test":"TestC","Output":"    c_test.go:5: GNNSTORE_DATA is not set\n"}` + "\n" + `{"Action":"skip","Package":"p","Test":"TestC"}` + "\n"
		noTests = `{"Action":"output","Package":"q","Output":"?  q [no test files]\n"}` + "\n" + `{"Action":"skip","Package":"q"}` + "\n"
		fails   = `{"Action":"output","Package":"p","Test":"TestD","Output":"1 is not 2\n"}` + "\n" + `{"Action":"fail","Package":"p","Test":"TestD"}` + "\n"
		breaks  = `{"Action":"build-output","ImportPath":"p","Output":"undefined: x\n"}` + "\n" + `{"Action":"build-fail","ImportPath":"p"}` + "\n"
	)
	for _, c := range []struct {
		name, in, out, err string
		allow              []string
	}{
		{name: "passes", in: pass + noTests, out: "1 passed, 0 failed, 0 skipped"},
		{name: "a skip that is allowed", in: pass + noGPU, out: "skip p TestB: b_test.go:5: no GPU here\n1 passed, 0 failed, 1 skipped"},
		{name: "a skip that is not", in: pass + data, out: "SKIP NOT ALLOWED p TestC: c_test.go:5: GNNSTORE_DATA is not set\n1 passed, 0 failed, 1 skipped", err: "1 skipped"},
		{name: "a skip without data", in: pass + data, allow: []string{"GNNSTORE_DATA"}, out: "skip p TestC: c_test.go:5: GNNSTORE_DATA is not set\n1 passed, 0 failed, 1 skipped"},
		{name: "a failure", in: pass + fails, out: "FAIL p TestD\n1 is not 2\n1 passed, 1 failed, 0 skipped", err: "1 failed"},
		{name: "a build that fails", in: breaks, out: "FAIL p\nundefined: x\n0 passed, 1 failed, 0 skipped", err: "1 failed"},
		{name: "nothing ran", in: noTests, out: "0 passed, 0 failed, 0 skipped", err: "no test ran"},
		{name: "a line of no event", in: "warning\n" + pass, out: "warning\n1 passed, 0 failed, 0 skipped"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			err := countTests(&out, io.Discard, strings.NewReader(c.in), append(c.allow, skippable...))
			require.Equal(t, c.out+"\n", out.String())
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
			} else {
				require.NoError(t, err)
			}
		})
	}
}

// TestListSkipped: what one step skips and another runs was not skipped, and what several skip is
// told once.
func TestListSkipped(t *testing.T) {
	event := func(action, test, said string) string {
		out := ""
		if said != "" {
			out = `{"Action":"output","Package":"p","Test":"` + test + `","Output":"    a_test.go:5: ` + said + `\n"}` + "\n"
		}
		return out + `{"Action":"` + action + `","Package":"p","Test":"` + test + `"}` + "\n"
	}
	var record bytes.Buffer
	for _, in := range []string{
		event("skip", "TestA", "no GPU here") + event("skip", "TestB", "GNNSTORE_DATA is not set") + event("pass", "TestC", ""),
		event("skip", "TestA", "no GPU there") + event("pass", "TestB", ""),
	} {
		require.NoError(t, countTests(io.Discard, &record, strings.NewReader(in), []string{"no GPU", "GNNSTORE_DATA"}))
	}
	record.WriteString("skipped\ta step\tno root\n")
	var out bytes.Buffer
	require.NoError(t, listSkipped(&out, record.String(), true))
	require.Equal(t, "skipped in every step: 2\n  a step: no root\n  p TestA: a_test.go:5: no GPU here\n", out.String())

	out.Reset()
	require.NoError(t, listSkipped(&out, "", true))
	require.Equal(t, "skipped in every step: 0\n", out.String())

	lacking := "skipped\tp TestD\td_test.go:7: GNNSTORE_DATA is not set\n"
	require.NoError(t, listSkipped(io.Discard, lacking, false))
	require.ErrorContains(t, listSkipped(io.Discard, lacking, true), "p TestD: there is data")
}
