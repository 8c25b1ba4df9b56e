package table

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/ingest"
)

// inferred infers a schema of dir, and reads the graph by it.
func inferAndRead(t testing.TB, dir string) (string, graph) {
	yaml, err := Infer(dir, Options{})
	require.NoError(t, err)
	path := filepath.Join(dir, "s.yaml")
	require.NoError(t, os.WriteFile(path, yaml, 0o644))
	g, err := read(dir, Options{})
	require.NoError(t, err, "%s", yaml)
	return string(yaml), g
}

func TestInfer(t *testing.T) {
	var users, items, orders, follows strings.Builder
	users.WriteString("user_id,age,country,segment,bio,split\n")
	items.WriteString("id;price;vector;created\n")
	orders.WriteString("{}\n")
	orders.Reset()
	follows.WriteString("src\tdst\tweight\ttimestamp\tnote\n")
	for i := range 40 {
		fmt.Fprintf(&users, "u%02d,%d,%s,s%d,text %d,%s\n", i, i, []string{"de", "at", "ch"}[i%3], i%2, i, []string{"train", "valid", "test"}[i%3])
		fmt.Fprintf(&items, "%d;0.5;1|2|%d;1700000000%03d\n", i+100, i, i)
		fmt.Fprintf(&orders, `{"user":"u%02d","item_id":%d,"amount":%d}`+"\n", i, i+100, i)
		fmt.Fprintf(&follows, "u%02d\tu%02d\t0.5\t17000000%02d\tx\n", i, (i+1)%40, i)
	}
	dir := files{
		"users.csv": users.String(), "stock/items_1.csv": items.String(), "stock/items_2.csv": "id;price;vector;created\n7;1;2|3|4;5\n",
		"orders.jsonl.gz": zipped(orders.String()), "follows.tsv": follows.String(), "README.md": "hello", "notes.csv": "a,b\n1,x\n1,y\n", ".hidden.csv": "x\n",
	}.write(t)
	yaml, g := inferAndRead(t, dir)
	require.Equal(t, strings.ReplaceAll(`# A first schema, from the names, headers and first 1000 rows of the tables. Read it, and correct it.
# notes.csv: passed over: no column is an id that is unique in the first 2 rows, and no two look like the ends of edges
name: NAME
reverse: yes # messages also flow from destinations to sources; no leaves that out
nodes:
  - type: item
    files: "stock/items_*.csv"
    delimiter: ";"
    id: id # unique in the first 40 rows, integers
    features: [price] # columns of numbers
    counts: all # and columns with the number of its edges, by relation and direction
    # label: COLUMN # the column of the classes to predict, if there is one
    # not used: vector (text), created (large integers, as ids and times are)
  - type: user
    files: users.csv
    id: user_id # unique in the first 40 rows, text
    features: [age, country] # columns of numbers, and of few different texts
    categorical: [country]
    scale: {age: standard} # age: up to 39, and best near 1
    counts: all # and columns with the number of its edges, by relation and direction
    label: segment # by its name, its 2 different values, and since the table has a split
    split: "split" # its values are train, valid and test
    # not used: bio (text)
edges:
  - type: "user:follows:user" # columns src and dst
    files: follows.tsv
    src: src
    dst: dst
    weight: weight # by its name
    columns: [{name: time, column: timestamp, type: i64}] # by its name, and integers
    # not used: note
  - type: "item:orders:user" # columns item_id and user are called as the ids of nodes
    files: orders.jsonl.gz
    src: item_id
    dst: user
    weight: amount # by its name
`, "NAME", quote(g.schema.Name)), strings.ReplaceAll(yaml, `split: split`, `split: "split"`))
	require.Equal(t, []ingest.NodeType{{Name: "item", IDs: ingest.IntIDs, Aggregates: []string{"count:*"}}, {Name: "user", Count: 40, IDs: ingest.TextIDs, Aggregates: []string{"count:*"}}}, g.schema.NodeTypes)
	require.Len(t, g.ids["item"], 41)
	require.Equal(t, "u00>u01 0.5 1700000000", g.edges["user__follows__user"][0])
	require.Equal(t, "100>u00 0", g.edges["item__orders__user"][0])
}

// TestInferByValues: columns whose names do not tell are the ends of edges if their values are ids.
// Of tables that were read in part, ids are known by their look.
func TestInferByValues(t *testing.T) {
	var people, knows, dates strings.Builder
	people.WriteString("person,age,colour,churned,split\n")
	knows.WriteString("person,whom,since\n")
	dates.WriteString("person,when\n")
	for i := range 3000 {
		fmt.Fprintf(&people, "p%d,%d,k%d,%t,%s\n", i, 20+i%50, i%3, i%4 == 0, []string{"train", "valid", "test"}[i%3])
		fmt.Fprintf(&knows, "p%d,p%d,2020-01-%02d\n", i/2, i*7%3000, i%28+1)
		fmt.Fprintf(&dates, "p%d,2020-01-%02d\n", i/2, i%28+1)
	}
	things := "thing,category\nt1,a\nt2,a\nt3,b\nt4,b\nt5,b\nt7,a\nt8,b\nt9,a\n"
	yaml, g := inferAndRead(t, files{
		"persons.csv": people.String(), "knows.csv": knows.String(), "dates.csv": dates.String(), "things.csv": things,
		"owns.csv": "person,what\np1,t1\np2,t2\np1,t2\np3,t4\n", "odd.csv": "person,what\np1,t1\np2,t2\np3,t3\np4,t6\np1,t6\n",
	}.write(t))
	require.Contains(t, yaml, `"person:knows:person" # column person is called as the ids of person, and column whom has values that are ids of person`)
	require.Contains(t, yaml, `"person:owns:thing"`)
	require.Contains(t, yaml, "# dates.csv: passed over")
	require.Contains(t, yaml, "# odd.csv: passed over", "t6 is no thing")
	require.Len(t, g.edges["person__knows__person"], 3000)
	require.Contains(t, yaml, "label: churned # by its name, its 2 different values, and since the table has a split")
	require.Contains(t, yaml, "categorical: [category]", "no label, since another type has one")
}

// TestInferLabels: what may be a label is never among the features, where it would be trained on.
func TestInferLabels(t *testing.T) {
	for _, c := range []struct {
		header string
		want   []string
	}{
		{"id,Label,kind,x", []string{"    label: Label # by its name\n", "features: [kind, x]"}}, // a kind beside a label is a feature
		{"id,user_class,x,kind", []string{"    # label: user_class # perhaps, by its name and 3 different", "not used: kind (perhaps a label)"}},
		{"id,label,y,x", []string{"    label: label # by", "not used: y (perhaps a label)"}},
		{"id,x,genres,c", []string{"    # label: genres # perhaps", "features: [x, c]"}},
		{"id,x,b,c", []string{"    # label: COLUMN # the column of the classes to predict, if there is one\n", "features: [x, b, c]"}},
	} {
		var b strings.Builder
		b.WriteString(c.header + "\n")
		for i := range 30 {
			b.WriteString(fmt.Sprint(i))
			for _, name := range strings.Split(c.header, ",")[1:] {
				fmt.Fprintf(&b, ",%s", map[bool]string{true: fmt.Sprint(i), false: fmt.Sprint(name, i%3)}[name == "x"])
			}
			b.WriteString("\n")
		}
		yaml, _ := inferAndRead(t, files{"users.csv": b.String(), "edges.csv": "src,dst\n0,1\n"}.write(t))
		for _, want := range c.want {
			require.Contains(t, yaml, want, c.header)
		}
	}
	// A target that is a number of its own for each node.
	var b strings.Builder
	for i := range 150 {
		fmt.Fprintf(&b, "%d,%d.5,%d\n", i, i, i)
	}
	yaml, _ := inferAndRead(t, files{"users.csv": "id,target,x\n" + b.String(), "edges.csv": "src,dst\n0,1\n"}.write(t))
	require.Contains(t, yaml, "features: [x]")
	// NA is a country's code, and a number that is missing.
	countries, _ := inferAndRead(t, files{"countries.csv": "id,area,note\nNA,825.6,a\nDE,NA,b\nAT,83.9,c\n", "edges.csv": "src,dst\nNA,DE\n"}.write(t))
	require.Contains(t, countries, "id: id # unique in the first 3 rows, text")
	require.Contains(t, countries, "# not used: area (1 of 3 rows have none; missing: mean would fill them), note (text)")
	require.Contains(t, yaml, "not used: target (perhaps a label)")
}

// TestInferForeign: a column of a table of nodes that is called after another is an edge.
func TestInferForeign(t *testing.T) {
	yaml, g := inferAndRead(t, files{"companies.csv": "id,name\na,A\nb,B\n", "people.csv": "id,company_id,age\n1,a,3\n2,a,4\n"}.write(t))
	require.Contains(t, yaml, `type: "people:has:company" # column company_id is called as the ids of company`)
	require.Equal(t, map[string][]string{"people__has__company": {"1>a", "2>a"}}, g.edges)
	require.Equal(t, []float32{3, 4}, g.rows["people/feat"])
}

func TestInferRefuses(t *testing.T) {
	dir := t.TempDir()
	_, err := Infer(dir, Options{})
	require.EqualError(t, err, dir+": there are no tables in it: csv, tsv, txt, parquet or jsonl, perhaps with .gz or .zst")
	dir = files{"a.csv": "a,b\n1,x\n1,y\n", "b.parquet": "no"}.write(t)
	_, err = Infer(dir, Options{})
	require.EqualError(t, err, dir+": no table in it looks like edges: two columns such as src and dst, or that are called as ids of nodes; write the schema by hand")
	_, err = Infer(filepath.Join(dir, "none"), Options{})
	require.ErrorIs(t, err, os.ErrNotExist)
	yaml, _ := inferAndRead(t, files{"edges.csv": "from,to\na,b\n", "odd [1].csv": "src,dst\n1,2\n", "x.parquet": "PAR1 broken file"}.write(t))
	require.Contains(t, yaml, "# x.parquet: passed over: ")
	require.Contains(t, yaml, `files: "odd [1].csv"`)
}

// TestInferred: what is inferred loads, whatever the columns are called.
func TestInferred(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		name := rapid.OneOf(rapid.SampledFrom([]string{"id", "user_id", "src", "dst", "label", "split", "no", "a: b", "#x", "é", "1", "", "weight", "time", "users"}), rapid.StringMatching(`[ -!#-+\--~]{1,8}`))
		f := files{"edges.csv": "src,dst\n0,1\n"}
		for _, table := range []string{"users.csv", "items.csv", "buys.csv"} {
			header := rapid.SliceOfN(name, 1, 4).Draw(r, "header")
			var b strings.Builder
			b.WriteString("\"" + strings.Join(header, "\",\"") + "\"\n")
			for i := range rapid.IntRange(1, 10).Draw(r, "rows") {
				for k := range header {
					fmt.Fprintf(&b, "%s%s", map[bool]string{true: ","}[k > 0], rapid.SampledFrom([]string{fmt.Sprint(i), fmt.Sprint("v", i), "0.5", "train", "1;2"}).Draw(r, "cell"))
				}
				b.WriteString("\n")
			}
			f[table] = b.String()
		}
		dir := f.write(t)
		yaml, err := Infer(dir, Options{})
		require.NoError(r, err)
		require.NoError(r, os.WriteFile(filepath.Join(dir, "s.yaml"), yaml, 0o644))
		s, err := Open(filepath.Join(dir, "s.yaml"), Options{})
		require.NoError(r, err, "%s", yaml)
		require.NoError(r, s.Close())
	})
}

// TestInferReal looks at the tables of public graphs. It needs GNNSTORE_DATA, by which word CI
// finds the files of such tests.
func TestInferReal(t *testing.T) {
	var want map[string]any
	copied := func(name string, only ...string) string {
		from, to := expect(t, name, &want), t.TempDir()
		for _, file := range only {
			b, err := os.ReadFile(filepath.Join(from, file))
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(to, file), b, 0o644))
		}
		return to
	}
	yaml, g := inferAndRead(t, copied("wn18rr", "train.txt", "valid.txt", "test.txt"))
	require.Contains(t, yaml, "files: [test.txt, train.txt, valid.txt]\n    format: tsv\n    header: no")
	require.Len(t, g.schema.Relations, 11)
	yaml, g = inferAndRead(t, copied("musae_facebook", "facebook_edges.csv", "facebook_target.csv"))
	require.Contains(t, yaml, "    # label: page_type # perhaps, by its name and 4 different values")
	require.NotContains(t, yaml, "features:")
	require.Len(t, g.ids["facebook_target"], 22470)
	require.Len(t, g.edges["facebook_target__facebook_edges__facebook_target"], 171002)
	_, g = inferAndRead(t, copied("bitcoin_otc", "soc-sign-bitcoinotc.csv"))
	require.Len(t, g.edges["node__soc-sign-bitcoinotc__node"], 35592)
}

// TestInferCalledTest: a count that is called test is no mask, and leaves the masks beside it.
func TestInferCalledTest(t *testing.T) {
	var nodes, edges strings.Builder
	nodes.WriteString("id,train_mask,val_mask,test\n")
	edges.WriteString("src,dst\n")
	for i := range 30 {
		fmt.Fprintf(&nodes, "n%d,%d,%d,%d\n", i, 1-i%2, i%2, i)
		fmt.Fprintf(&edges, "n%d,n%d\n", i, (i+1)%30)
	}
	yaml, g := inferAndRead(t, files{"nodes.csv": nodes.String(), "edges.csv": edges.String()}.write(t))
	require.Contains(t, yaml, "masks: {train: train_mask, valid: val_mask} #")
	require.Contains(t, yaml, "features: [test]")
	require.Len(t, g.splits["node"][0], 15)
}

// TestInferColumns: numbers with a long tail or too large for 16 bits get a scale, dates get parts,
// and texts with many values a cap or a hash. The schema reads the table.
func TestInferColumns(t *testing.T) {
	var b strings.Builder
	b.WriteString("user_id,age,income,big,signup,seen,mixed,city,agent,name,at\n")
	for i := range 1200 {
		day := fmt.Sprintf("20%02d-%02d-%02d", i%20, i%12+1, i%28+1)
		signup, mixed := day, day
		if i%50 == 7 {
			signup = "NA"
		}
		if i == 5 {
			mixed = "soon"
		}
		fmt.Fprintf(&b, "u%d,%d,%d,%d,%s,%sT%02d:00:00Z,%s,city%d,agent%d,name %d,%d\n", i, 18+i%70,
			int(math.Pow(10, float64(i%7))), 70000+i%10, signup, day, i%24, mixed, i%60, i%400, i, 1700000000+i)
	}
	dir := files{"users.csv": b.String(), "follows.csv": "src,dst\nu0,u1\n"}.write(t)
	yaml, g := inferAndRead(t, dir)
	require.Contains(t, yaml, `
    features: [age, income, big, signup, seen, city, agent] # columns of numbers, and others as the next lines say
    max_categories: {city: 50} # city: 60 different texts in the first 1000 rows
    hash: {agent: 32} # agent: 400 different texts in the first 1000 rows
    scale: {age: standard, income: log, big: standard} # age: up to 87, and best near 1; income: the largest number, `)
	require.Contains(t, yaml, `; big: numbers up to 7.001e+04, and 16 bits end at 65504
    dates: {signup: [year, month, weekday, age], seen: [year, month, weekday, hour, age]} # signup: its cells are dates; its age is until the newest one; seen: `)
	require.Contains(t, yaml, "\n    missing: {signup: indicator} # signup: 20 of the first 1000 rows have none\n")
	require.Contains(t, yaml, "# not used: mixed (text), name (text), at (large integers, as ids and times are)\n")
	require.Equal(t, 1+1+1+(6+1)+8+51+32, g.schema.Tables[0].Dim)
	for _, x := range g.rows["user/feat"] {
		require.Less(t, math.Abs(float64(x)), 65504.0)
	}
}

// TestInferredColumnsAreAccepted: whatever a column of any kind holds, the schema that is inferred
// from the whole table reads it.
func TestInferredColumnsAreAccepted(t *testing.T) {
	kinds := map[string]func(r *rapid.T) string{
		"number": func(r *rapid.T) string { return fmt.Sprint(rapid.Float32Range(-1e30, 1e30).Draw(r, "x")) },
		"amount": func(r *rapid.T) string { return fmt.Sprint(rapid.IntRange(0, 1<<40).Draw(r, "n")) },
		"day": func(r *rapid.T) string {
			return fmt.Sprintf("%04d-02-%02d", rapid.IntRange(1, 9999).Draw(r, "y"), rapid.IntRange(1, 29).Draw(r, "d"))
		},
		"time": func(r *rapid.T) string {
			return fmt.Sprintf("2020-01-01 %02d:00:00", rapid.IntRange(0, 23).Draw(r, "h"))
		},
		"zoned": func(r *rapid.T) string {
			return fmt.Sprintf("2020-01-01T%02d:00:00+01:00", rapid.IntRange(0, 23).Draw(r, "h"))
		},
		"word": func(r *rapid.T) string { return rapid.SampledFrom([]string{"a", "b c", "é", "true"}).Draw(r, "w") },
		"text": func(r *rapid.T) string { return "text" + fmt.Sprint(rapid.IntRange(0, 60).Draw(r, "t")) },
		"none": func(*rapid.T) string { return "" },
		"NA":   func(*rapid.T) string { return "NA" },
	}
	rapid.Check(t, func(r *rapid.T) {
		var columns [][]string
		for range rapid.IntRange(1, 4).Draw(r, "columns") {
			columns = append(columns, rapid.SliceOfN(rapid.SampledFrom(slices.Sorted(maps.Keys(kinds))), 1, 2).Draw(r, "kinds"))
		}
		var b strings.Builder
		b.WriteString("user_id")
		for k := range columns {
			fmt.Fprintf(&b, ",c%d", k)
		}
		for i := range rapid.SampledFrom([]int{1, 3, 130}).Draw(r, "rows") {
			fmt.Fprintf(&b, "\nu%d", i)
			for _, c := range columns {
				b.WriteString("," + kinds[rapid.SampledFrom(c).Draw(r, "kind")](r))
			}
		}
		dir := files{"users.csv": b.String() + "\n", "follows.csv": "src,dst\nu0,u0\n"}.write(t)
		yaml, err := Infer(dir, Options{})
		require.NoError(r, err)
		require.NoError(r, os.WriteFile(filepath.Join(dir, "s.yaml"), yaml, 0o644))
		_, err = read(dir, Options{})
		require.NoError(r, err, "%s\n%s", yaml, b.String())
	})
}
