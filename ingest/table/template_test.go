package table

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTemplate: the template is a schema that reads tables with the columns that it names, and has
// every key of the parser. So has the topic of the program.
func TestTemplate(t *testing.T) {
	g, err := read(templateFiles().write(t), Options{})
	require.NoError(t, err)
	require.Len(t, g.schema.NodeTypes, 3)
	require.Len(t, g.schema.Relations, 3)
	require.Len(t, g.rows["user/feat"], 2*(1+1+2+7+3+3+32))

	topic, err := os.ReadFile("../../cmd/gnnstore/topics/schema.md")
	require.NoError(t, err)
	for _, key := range slices.Concat([]string{"name", "nodes", "edges", "train", "valid", "test", "column"}, nodeKeys, edgeKeys, joinKeys) {
		has := regexp.MustCompile(`(^|[\s{#-])` + key + `:`)
		require.Regexp(t, has, string(Template()), key)
		if key != "column" && key != "format" {
			require.Regexp(t, has, string(topic), key)
		}
	}
}

// templateFiles has tables with the columns that the template names.
func templateFiles() files {
	return files{
		"s.yaml": string(Template()),
		"users.csv": "user_id,active,age,income,vector,signup,country,city,agent,segment,part\n" +
			"u1,1,30,2e5,1;2,2020-01-01,de,bonn,x,gold,train\nu2,yes,?,1,3;4,,at,wien,y,iron,\nu3,0,bad,,,,,,,,\n",
		"items.csv": "sku,price\n7,1\n8,2\n", "kinds.csv": "item,kind\n7,a\n8,b\n",
		"buys.csv":  "user,item,amount,bought_at,price_paid\nu1,7,1,2020-02-29,3\nu2,,1,2020-02-29,3\n",
		"facts.csv": "item,relation,brand\n7,made_by,acme\n8,sold_by,corner\n",
	}
}

// TestSchemaErrors: an error about the schema is told from one about a table. An unknown key names
// the nearest one.
func TestSchemaErrors(t *testing.T) {
	open := func(schema string) error {
		dir := files{"s.yaml": schema, "n.csv": "x\n1\n", "e.csv": "x,y\n0,0\n"}.write(t)
		_, err := read(dir, Options{})
		return err
	}
	for schema, want := range map[string]string{
		"nodes: [{type: a, files: n.csv, feature: [x]}]\n" + pairs:                   `an entry of nodes has no key "feature"; did you mean features? there are type, files`,
		"nodes: [{type: a, files: n.csv, features: [z]}]\n" + pairs:                  `features: there is no column "z" in`,
		"nodes: [{type: a, files: n.csv, features: [x], scale: {z: log}}]\n" + pairs: "scale z",
		"{": "not YAML", "": "there is nothing in it",
	} {
		err := open(schema)
		require.ErrorContains(t, err, want)
		require.True(t, errors.As(err, new(*SchemaError)), "%v", err)
	}
	err := open("nodes: [{type: a, files: n.csv, features: [x]}]\nedges: [{type: \"a:to:a\", files: e.csv, src: x, dst: y, weight: x, features: [y], missing: refuse}]\n")
	require.NoError(t, err)
	dir := files{"s.yaml": "nodes: [{type: a, files: n.csv, features: [x], scale: standard}]\n" + pairs, "n.csv": "x\n1\nword\n", "e.csv": "x,y\n0,0\n"}.write(t)
	_, err = read(dir, Options{})
	require.ErrorContains(t, err, "n.csv: line 3")
	require.False(t, errors.As(err, new(*SchemaError)), "the table is wrong: %v", err)
	_, err = Open(filepath.Join(dir, "none.yaml"), Options{})
	require.ErrorIs(t, err, os.ErrNotExist)
	require.False(t, errors.As(err, new(*SchemaError)))
}
