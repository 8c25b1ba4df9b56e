// Package ingest has the interface of raw graphs. A [Source] reads a raw graph from files, and each
// family of formats has a package of its own below this one. A [Schema] lists the sections of a
// source, and chunks carry their rows. Package build makes a sealed dataset of any Source.
//
// This package also has what several formats need. A [Chunker] cuts rows into chunks. A [Category]
// numbers the different values of a column. [Files] finds changed files. [Progress] reports the
// progress of a build.
package ingest
