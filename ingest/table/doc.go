// Package table reads a graph of many types of nodes and edges from users' tables, which one small
// schema in YAML describes: [Open] it as a Source. [Infer] writes a first schema for a folder of
// tables.
//
// A schema has entries of nodes and of edges. Everything but type, files, src and dst may be left
// out:
//
//	name: shop                      # of the dataset; default the schema file's name
//	nodes:
//	  - type: user
//	    files: users/part_*.csv.gz  # a path, a pattern, or a list of both, in the schema's folder
//	    format: csv                 # csv, tsv, parquet or jsonl; default by the names of the files
//	    delimiter: ","              # of csv and tsv
//	    header: yes                 # no: columns go by number, from 1
//	    id: user_id                 # default: the number of the row, from 0
//	    id_type: text               # text, int, or auto, which the first rows tell
//	    features: [age, embedding, country]
//	    categorical: [country]
//	    scale: {age: standard}      # or minmax, log, rank, quantile; one word is for all numbers
//	    learn_from: train           # means, scales and newest dates; default all, from all rows
//	    dates: {signup: [year, age]} # parts of dates: year, month, day, weekday, hour, age
//	    reference: {signup: 2024-12-31} # that ages are counted to; default the newest date
//	    max_categories: {city: 50}  # the most frequent; all others share a column
//	    hash: {agent: 32}           # texts are hashed into so many columns
//	    missing: {age: mean}        # of numbers: refuse, 0, mean or indicator; one word is for all columns
//	    unknown: {country: 0}       # of categories that Options.Like lacks: refuse, or 0
//	    label: segment              # or value: a column of numbers to learn
//	    labels: topics              # instead: lists, as in a|b; or [a, b], columns of 0 and 1
//	    split: part                 # its values are train, valid, test (or 0, 1, 2), or nothing
//	    masks: {train: m1, valid: m2, test: m3} # instead: columns of zeros and ones
//	    missing_words: [unknown, "?"] # stand for nothing, like an empty cell
//	    where: {kind: [person, "person:*"]} # rows with one of these values; a star is anything
//	    join:                       # labels and splits in other files, which name nodes by ids
//	      - {files: segments.csv, id: user, label: segment}
//	  - type: item
//	    files: [items.parquet]
//	    id: sku
//	    features: {feat: [price], text: [title_vector]}
//	    split: {train: train.csv, valid: valid.csv, test: test.csv}
//	  - type: brand                 # no files: its nodes are the ids that edges name
//	edges:
//	  - type: user:buys:item
//	    files: buys.parquet
//	    src: user
//	    dst: item
//	    empty_ends: skip            # a row without src or dst is no edge; default refuse
//	    weight: amount              # kept beside the edge, as f32
//	    columns: [{name: time, column: bought_at, type: i64}]
//	    features: [price_paid, days]
//	  - type: item:*:brand          # a relation for every value of a column
//	    files: facts.tsv
//	    src: item
//	    relation_column: relation
//	    dst: brand
//
// Where nodes are listed, all types that edges have are; where none are, the nodes of all types are
// the ids that edges name.
//
// # Cells
//
// Text files are read as encoding/csv reads them; an empty cell is missing. Parquet has nulls, JSON
// lines leave keys out.
//
// An id is an integer from 0, or text of 1 to 4096 bytes, kept as it is: leading zeros, blanks and
// all. auto makes integers of a column only when the first 1000 ids print as they stand, so that
// 007 stays text; 12.0 is 12, as a column of floats has it. 1.24E+11, whose last digits a
// spreadsheet left out, is refused, unless id_type is text.
//
// A feature is a number, a list of numbers, or numbers parted by semicolons, as many in every row
// as in most of the first 1000. A categorical one becomes a column for each of its values in their
// order (onehot, up to 1024), or, with categorical: {country: index}, its number among them (up to
// 65536; half precision tells 2048 apart), -1 where it is missing.
//
// With max_categories the most frequent values have columns, and all others share one. A hashed
// text has 1 or -1 in one of some columns.
//
// A scale changes numbers in float64 before they become float32. A date becomes numbers and angles;
// see the topic schema of the program, and package store for the exact rules.
//
// A number that is missing makes its row bad, unless missing replaces it: by 0; by the mean of the
// rows that have one, each element's own in vectors; or, as indicator, by 0 and a further column
// behind the numbers, 1 where they are missing and 0 elsewhere. Blank cells, NA, nan, null, None
// and n/a are missing.
//
// Labels that are integers counting from 0 are classes by number; other integers and text are
// classes of that name, in their order. Blank cells, NA, nan, null, None, n/a and negative integers
// are missing, and true and false are one class each, however they are capitalised; so it is with
// categories.
//
// Columns of edges of type i64 keep dates as seconds since 1970, and of type s, ms, us or ns as
// counts of that unit. Parquet's timestamps are dates.
//
// A value is a finite number of 32 bits, or missing as a feature is, and its node then has none to
// learn.
//
// Several entries may read one file, each the rows that its where chooses, so that one table feeds
// several node types and relations. No row is a node of two types, and rows that no entry takes are
// noted. where goes by the text of cells, which is empty where they are missing.
//
// Values of a relation_column become names of relations, in the order of their bytes, with _ for
// what no name may have.
//
// # Following a dataset
//
// [Options].Like encodes tables as another dataset's. A network that was trained on that dataset
// then reads the same numbers. Columns are taken by name, in the other dataset's order. That
// dataset also gives the numbers of categories, the rules and means for missing numbers, and the
// classes of labels. The schema must list all of its columns, and no others. A category that it
// lacks is refused; with unknown: {COLUMN: 0} it counts as missing.
//
// # Bad rows
//
// A row that one column makes bad is bad for all: every pass reads the declared columns of a row
// whole, and those that [Options].SkipBad lets pass are passed over in every section.
//
// # Memory
//
// A chunk, a row, and the different values of labels, categories and relations, which are bounded;
// 256 KiB for each number that is scaled by ranks; for Parquet its pages (see its package). A table
// is read once beforehand where it has labels, categories, means or scales, or no column of ids,
// and for a relation_column; each relation of such a column is a reading of its own. Joined files
// take 32 bytes a row, up to a quarter of the memory of the ingest.
package table
