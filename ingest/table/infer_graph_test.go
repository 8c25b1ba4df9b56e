package table

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestInferProperties: the headers of property graphs make a type of nodes of each first label, and
// a relation of each type of edges.
func TestInferProperties(t *testing.T) {
	yaml, g := inferAndRead(t, files{
		"dogs.csv":  "tag:ID(Dog),name,age:int,:LABEL\nd1,Rex,3,Dog;Pet\nd2,Ida,4,Dog\n",
		"homes.csv": "no:ID(Home),:LABEL\nd1,Home\nd7,Home\n",
		"links.csv": ":START_ID(Dog),since,:END_ID(Home),:TYPE\nd1,5,d1,LIVES_IN\nd2,6,d7,LEFT\nd1,7,d7,LEFT\n",
	}.write(t))
	require.Equal(t, map[string][]string{"Dog__LIVES_IN__Home": {"d1>d1"}, "Dog__LEFT__Home": {"d2>d7", "d1>d7"}}, g.edges)
	require.Equal(t, map[string][]string{"Dog": {"d1", "d2"}, "Home": {"d1", "d7"}}, g.ids)
	require.Equal(t, []float32{3, 4}, g.rows["Dog/feat"])
	require.Contains(t, yaml, "of neo4j-admin")

	yaml, g = inferAndRead(t, files{"all.csv": "_id,_labels,name,weight,_start,_end,_type,score\n7,:Dog:Pet,Rex,3,,,,\n9,:Dog,Ida,4,,,,\n8,:Home,,,,,,\n" +
		",,,,7,8,LIVES_IN,0.5\n,,,,9,7,KNOWS,1\n"}.write(t))
	require.Contains(t, yaml, `where: {_labels: [":Dog", ":Dog:*"]}`)
	require.Contains(t, yaml, "    weight: score # by its name\n")
	require.Equal(t, map[string][]string{"Dog__LIVES_IN__Home": {"7>8 0.5"}, "Dog__KNOWS__Dog": {"9>7 1"}}, g.edges)
	require.Empty(t, g.schema.Skipped)

	yaml, g = inferAndRead(t, files{
		"vertices.csv": "~id,~label,legs:Int\nv1,dog,4\nv2,home,\nv3,dog,3\n",
		"links.csv":    "~id,~from,~to,~label,weight:Double\nl1,v1,v2,lives,0.5\nl2,v3,v1,knows,1\n",
	}.write(t))
	require.Contains(t, yaml, `where: {"~label": [dog]}`)
	require.Len(t, g.edges, 2)
	require.Equal(t, []float32{4, 3}, g.rows["dog/feat"])
}

// TestInferMerged: a relation that begins or ends in several types makes one type of them, since a
// row of edges does not name the types of its ends.
func TestInferMerged(t *testing.T) {
	var b strings.Builder
	b.WriteString("_id,_labels,_start,_end,_type\n")
	for i := range 20 {
		fmt.Fprintf(&b, "%d,%s,,,\n", i, []string{":Dog", ":Cat:Pet", ":Home"}[i%3])
	}
	b.WriteString(",,0,1,KNOWS\n,,1,0,KNOWS\n,,1,2,LIVES\n,,0,5,LIVES\n")
	yaml, g := inferAndRead(t, files{"all.csv": b.String()}.write(t))
	require.Contains(t, yaml, "  - type: Dog_Cat\n")
	require.Contains(t, yaml, "    categorical: [_labels]\n")
	require.Equal(t, map[string][]string{"Dog_Cat__KNOWS__Dog_Cat": {"0>1", "1>0"}, "Dog_Cat__LIVES__Home": {"1>2", "0>5"}}, g.edges)

	yaml, g = inferAndRead(t, files{"all.csv": "_id,_labels,_start,_end,_type\n1,:Dog,,,\n2,:Dog,,,\n,,1,2,KNOWS\n,,1,,KNOWS\n"}.write(t))
	require.Contains(t, yaml, "    empty_ends: skip # 1 of the first 2 rows have no end, and make no edge\n")
	require.Equal(t, []string{"1>2"}, g.edges["Dog__KNOWS__Dog"])

	_, err := Infer(files{"nodes.csv": "_id,_labels,_start,_end,_type\n1,:Dog,,,\n,,7,8,KNOWS\n"}.write(t), Options{})
	require.ErrorContains(t, err, "no table in it looks like edges")
}

// TestInferJoins: features here, labels and splits there are one type of nodes, and words for
// nothing are named.
func TestInferJoins(t *testing.T) {
	yaml, g := inferAndRead(t, files{
		"btc_features.csv": "830001,1,0.5\n77002,1,0.25\n990003,2,1.5\n120004,2,2\n",
		"btc_classes.csv":  "coinId,class\n77002,2\n830001,unknown\n120004,1\n990003,2\n",
		"btc_edges.csv":    "coinId1,coinId2\n830001,77002\n120004,990003\n",
		"btc_split.csv":    "coin,train_mask,val_mask\n830001,1,0\n77002,0,1\n120004,1,0\n990003,0,0\n",
	}.write(t))
	require.Contains(t, yaml, "  - type: btc\n    files: btc_features.csv\n    header: no")
	require.Contains(t, yaml, "        missing_words: [unknown] # leave them out if they are values\n")
	require.Equal(t, []string{"1", "2"}, g.schema.Labels[0].ClassNames)
	require.Equal(t, []int32{-1, 1, 1, 0}, g.labels["btc"])
	require.Equal(t, []float32{1, 0.5, 1, 0.25, 2, 1.5, 2, 2}, g.rows["btc/feat"])
	require.Equal(t, [3][]string{{"830001", "120004"}, {"77002"}, nil}, g.splits["btc"])
	require.Equal(t, []string{"830001>77002", "120004>990003"}, g.edges["btc__btc_edges__btc"])
}

// TestInferRoles: masks, splits and labels go by the names that other formats know, where the
// values are such.
func TestInferRoles(t *testing.T) {
	f := func(header string, row func(i int) string) string {
		var b strings.Builder
		b.WriteString(header + "\n")
		for i := range 12 {
			fmt.Fprintf(&b, "n%d,%s\n", i, row(i))
		}
		yaml, _ := inferAndRead(t, files{"users.csv": b.String(), "edges.csv": "src,dst\nn0,n1\n"}.write(t))
		return yaml
	}
	yaml := f("id,f,is_train,is_val,is_test", func(i int) string { return fmt.Sprintf("%d,%d,%d,%d", i, b2i(i%3 == 0), b2i(i%3 == 1), b2i(i%3 == 2)) })
	require.Contains(t, yaml, "    masks: {train: is_train, valid: is_val, test: is_test} # by their names; no row is in two\n")
	require.Contains(t, yaml, "    features: [f] #")
	yaml = f("id,f,train_mask,test_mask", func(i int) string { return fmt.Sprintf("%d,1,%d", i, i%2) })
	require.Contains(t, yaml, "# not used: train_mask (it is called as a mask, and with others it is no split), test_mask")
	yaml = f("id,f,partition", func(i int) string { return fmt.Sprintf("%d,%s", i, []string{"train", "dev", "test"}[i%3]) })
	require.Contains(t, yaml, "    split: partition # its values are train, valid and test\n")
	yaml = f("id,f,split", func(i int) string { return fmt.Sprintf("%d,%d", i, i%3) })
	require.Contains(t, yaml, "(perhaps a split: with split, 0 is train, 1 valid and 2 test)")
	yaml = f("id,x,y", func(i int) string { return fmt.Sprintf("%d,%d", i, i%3) })
	require.Contains(t, yaml, "# not used: y (a label or, beside x, a coordinate)")
	yaml = f("id,f,g", func(i int) string { return fmt.Sprintf("%d,%s", i, []string{"7", "?", "8.5"}[i%3]) })
	require.Contains(t, yaml, `g (4 of 12 rows have no number; missing_words: ["?"] with missing: mean would fill them)`)

	alone, _ := inferAndRead(t, files{"a.csv": "510,1\n520,0\n530,1\n", "edges.csv": "src,dst\n510,520\n"}.write(t))
	require.Contains(t, alone, "    # label: 2 # perhaps: the only column beside the ids has 2 different integers; uncomment it")
	require.NotContains(t, alone, "features:")
}

func b2i(b bool) int { return map[bool]int{true: 1}[b] }

// TestInferNullable: a column that names another type's nodes is a relation, with empty cells and
// as a column of floats too.
func TestInferNullable(t *testing.T) {
	yaml, g := inferAndRead(t, files{
		"companies.csv": "id,size\n3,10\n4,20\n", "people.csv": "id,company_id,age\n1,3.0,30\n2,,40\n5,4.0,50\n",
	}.write(t))
	require.Contains(t, yaml, "    empty_ends: skip # 1 of the first 3 rows have no end, and make no edge\n")
	require.Equal(t, []string{"1>3", "5>4"}, g.edges["people__has__company"])
	// What it is called after has other ids.
	_, err := Infer(files{"companies.csv": "id,size\n3,10\n4,20\n", "people.csv": "id,company_id\n1,77\n2,78\n"}.write(t), Options{})
	require.ErrorContains(t, err, "no table in it looks like edges")
}

// TestInferTypeColumns: each value of a column node_type becomes a type of nodes, and the ends
// of edges tell between which types a relation is.
func TestInferTypeColumns(t *testing.T) {
	const nodes = "id,node_type,age,price,label\n1,user,3,,a\n2,item,,2.5,\n3,user,4,,b\n4,item,,3.5,\n5,brand,,,\n"
	yaml, g := inferAndRead(t, files{"nodes.csv": nodes, "edges.csv": "src,dst,edge_type,w\n1,2,buys,1\n3,4,buys,2\n3,2,buys,2\n2,5,made_by,1\n"}.write(t))
	require.Contains(t, yaml, "    where: {node_type: [user]}\n")
	require.Contains(t, yaml, "  - type: \"user:buys:item\" # columns src and dst\n")
	require.Equal(t, []string{"1>2 1", "3>4 2", "3>2 2"}, g.edges["user__buys__item"])
	require.Equal(t, []string{"2>5 1"}, g.edges["item__made_by__brand"])
	require.Equal(t, []float32{3, 4}, g.rows["user/feat"])
	require.Equal(t, []int32{0, 1}, g.labels["user"])
	require.NotContains(t, g.labels, "item")

	// Without a column of relations, edges between several pairs of types are one relation, so
	// their types are one.
	yaml, g = inferAndRead(t, files{"nodes.csv": nodes, "edges.csv": "src,dst\n1,2\n3,4\n"}.write(t))
	require.Contains(t, yaml, "user:edges:item")
	require.Equal(t, []string{"1>2", "3>4"}, g.edges["user__edges__item"])
	yaml, _ = inferAndRead(t, files{"nodes.csv": nodes, "edges.csv": "src,dst\n1,2\n2,5\n"}.write(t))
	require.Contains(t, yaml, "user_item_brand:edges:user_item_brand")

	// Types that are numbers, and ids that repeat in another type, which no column can tell apart.
	yaml, g = inferAndRead(t, files{"v.csv": "node_id,ntype,x\n1,0,1\n2,1,2\n3,0,4\n", "e.csv": "from,to\n1,2\n3,2\n"}.write(t))
	require.Equal(t, []string{"1>2", "3>2"}, g.edges["0__e__1"], yaml)
	text, err := Infer(files{"v.csv": "node_id,ntype,x\n1,0,1\n1,1,2\n3,0,4\n", "e.csv": "from,to\n1,2\n3,2\n"}.write(t), Options{})
	require.NoError(t, err)
	require.NotContains(t, string(text), "where")
}
