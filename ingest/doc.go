// Package ingest has the interface of raw graphs. A [Source] reads a raw graph from files, and each
// family of formats has a package of its own below this one. A [Schema] lists the sections of a
// source, and chunks carry their rows. Package build makes a sealed dataset of any Source.
//
// A dataset may follow another one, so that a network trained on the one works on the other: the
// same columns, relations and classes then have the same numbers in both. A [Like] describes the
// dataset to follow. A Source that knows its columns by name takes a Like as an option; [Follow]
// compares any Source with it, and puts relations and classes into its order.
//
// This package also has what several formats need. A [Chunker] cuts rows into chunks. A [Category]
// numbers the different values of a column. [Files] finds changed files. [Progress] reports the
// progress of a build.
//
// Errors and notes name an option by its key in braces, as in "{node_count} and {nodes}: leave one
// out", here and in all packages below. So do the command lines that they advise, as in "gnnstore
// ingest csv {header} yes". The command puts its flags in place of the keys; so may other callers,
// with build.Options.Text for the notes that a dataset records. Flags are literal only where they
// are data, in the arguments of export.StreamReport.
package ingest
