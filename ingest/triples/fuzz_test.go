package triples

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/lines"
)

// FuzzTriples: whatever a file holds, each triple has names that a dataset can keep, and an error
// is one line. A name of N-Triples that is written again reads the same.
func FuzzTriples(f *testing.F) {
	f.Add("a\tr\tb\nb r\tr\tc\n", uint8(columns))
	f.Add("a r b\n\n\fb r c\n", uint8(columns))
	f.Add("<http://x/a> <http://x/\\u0041> \"caf\\u00e9 \\\"q\\\"\"@fr .\n_:b1 <r> \"1\"^^<int> . # x\n", uint8(nTriples))
	f.Add("<a> <b> <c> <g> .\n<a> <b> \"c\"@en _:g .\n", uint8(nQuads))
	f.Add("<a> <b> \"\\uZZZZ\" .\n", uint8(nTriples))
	f.Add("<a> <b> <c> .\r<a> <b> <d> .\n", uint8(nTriples))
	f.Fuzz(func(t *testing.T, text string, of uint8) {
		in, err := lines.New("t", strings.NewReader(text))
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
			return
		}
		defer in.Close()
		p := parser{in: in, form: form(of % uint8(turtles))}
		for {
			triple, err := p.next()
			if err != nil {
				require.NotContains(t, err.Error(), "\n")
				return
			}
			if triple == nil {
				return
			}
			for i, name := range [][]byte{triple.head, triple.relation, triple.tail} {
				require.NotEmpty(t, name)
				require.LessOrEqual(t, len(name), ingest.MaxIDBytes)
				if p.form != columns && bytes.IndexByte(name, '\\') < 0 && !bytes.Contains(name, []byte("…")) {
					again, err := unescaped(name, triple.literal && i == 2)
					require.NoError(t, err)
					require.Equal(t, name, again)
				}
			}
		}
	})
}
