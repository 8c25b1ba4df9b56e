// Package ingest defines what a raw graph is. A [Source] reads one from the files of its owner, and
// each family of formats has a package of its own below this one. A [Schema] says which sections a
// source has, and chunks carry their rows. Package build makes a sealed dataset of any Source.
//
// This package also has what several formats need. A [Category] numbers the different values of a
// column. [Files] tells whether files have changed. [Progress] says how far a build is.
package ingest
