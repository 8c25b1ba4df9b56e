package table

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/sourcetest"
)

// larger is the shop with so many users in one of two files, so that they come in two chunks, and a
// bad row of buys.
func larger(t testing.TB, n int) files {
	f := shopFiles(t)
	users, buys := &strings.Builder{}, &strings.Builder{}
	users.WriteString("user_id,age,vector,country,segment,part\n")
	for i := range n {
		fmt.Fprintf(users, "u%d,%d,1;2;%d,%s,%s,%s\n", i, i%90, i%7, []string{"de", "at", ""}[i%3], []string{"gold", "silver", ""}[i%3], []string{"train", "valid", "test", ""}[i%4])
	}
	for i := range n {
		fmt.Fprintf(buys, `{"user":"u%d","item":%d,"amount":%d.5,"at":%d,"count":%d,"paid":[1],"days":3}`+"\n", i, []int{7, 3, 9}[i%3], i, -i, i%256)
	}
	buys.WriteString(`{"user":"u0","item":"what","amount":1,"at":1,"count":1,"paid":[1],"days":3}` + "\n") // a bad row
	f["users_2.csv"], f["buys.jsonl.gz"] = users.String(), zipped(buys.String())
	return f
}

func TestConform(t *testing.T) {
	input := func(f files, o Options) func() (ingest.Source, error) {
		path := filepath.Join(f.write(t), "s.yaml")
		return func() (ingest.Source, error) { return Open(path, o) }
	}
	list := &strings.Builder{}
	for i := range ingest.ChunkRows + 9 {
		fmt.Fprintf(list, "%d,%d\n", i, i*7%1000)
	}
	sourcetest.Conform(t, input(larger(t, 1000), Options{SkipBad: 1}), input(shopFiles(t), Options{}),
		input(templateFiles(), Options{}), input(files{"s.yaml": pairs, "e.csv": "x,y\n" + list.String()}, Options{}))
}
